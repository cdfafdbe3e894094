//! A TCP stream that gives up on a peer that neither sends nor takes anything for too long.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use async_io::Timer;
use async_std::net::TcpStream;
use futures_lite::{AsyncRead, AsyncWrite};

/// The stream under HTTP. Reading and writing each have their own watch.
#[derive(Debug)]
pub(crate) struct Watched {
    stream: TcpStream,
    idle: Duration,
    reading: Option<Timer>,
    writing: Option<Timer>,
}

impl Watched {
    pub(crate) fn new(stream: TcpStream, idle: Duration) -> Self {
        Self { stream, idle, reading: None, writing: None }
    }

    /// The stream without the watch.
    pub(crate) fn into_inner(self) -> TcpStream {
        self.stream
    }
}

/// Passes a result on; a pending one turns into an error when the timer has run out.
fn watch<T>(
    timer: &mut Option<Timer>,
    idle: Duration,
    cx: &mut Context<'_>,
    result: Poll<io::Result<T>>,
) -> Poll<io::Result<T>> {
    if result.is_ready() {
        *timer = None;
        return result;
    }
    match Pin::new(timer.get_or_insert_with(|| Timer::after(idle))).poll(cx) {
        Poll::Ready(_) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
        Poll::Pending => Poll::Pending,
    }
}

impl AsyncRead for Watched {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let me = &mut *self;
        let result = Pin::new(&mut me.stream).poll_read(cx, buf);
        watch(&mut me.reading, me.idle, cx, result)
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let me = &mut *self;
        let result = Pin::new(&mut me.stream).poll_write(cx, buf);
        watch(&mut me.writing, me.idle, cx, result)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_close(cx)
    }
}
