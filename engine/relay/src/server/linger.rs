//! An end that the client can read: closing a stream with unread input makes the kernel throw away what was
//! sent last.

use std::net::Shutdown;
use std::time::Duration;

use async_std::future::timeout;
use async_std::net::TcpStream;
use futures_lite::AsyncReadExt;

/// How long a client may take to stop sending.
const LINGER: Duration = Duration::from_secs(2);
const BUFFER_BYTES: usize = 16 << 10;

/// Ends our side of the stream and throws away what still comes, up to `max_bytes`.
pub(crate) async fn linger(stream: &TcpStream, max_bytes: usize) {
    if stream.shutdown(Shutdown::Write).is_err() {
        // The client has ended the stream altogether.
        return;
    }
    let drain = async {
        let (mut stream, mut buffer) = (stream, vec![0; BUFFER_BYTES]);
        let mut left = max_bytes;
        while left > 0 {
            match stream.read(&mut buffer).await {
                Ok(0) | Err(_) => break,
                Ok(read) => left = left.saturating_sub(read),
            }
        }
    };
    // Whoever has not stopped by then is cut off.
    let _ = timeout(LINGER, drain).await;
}
