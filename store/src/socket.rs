//! The holder of a log answers readers of other processes over a Unix socket.
//!
//! sled lets one process in. So whoever has the log open serves the others: the file `reader` in
//! the log's folder holds the path of the socket.

use std::fs;
use std::io;
use std::net::Shutdown;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::damage::Damage;
use crate::error::LogError;
use crate::files;
use crate::protocol::{receive, send, Answer, Question, MAX_ANSWER_BYTES, MAX_QUESTION_BYTES};
use crate::record::StreamInfo;
use crate::view::{lock, Query, View};

const PATH_FILE: &str = "reader";
const SOCKET_FILE: &str = "socket";
/// How many readers are served at a time; more are turned away.
const MAX_CONNECTIONS: usize = 16;
/// A reader or holder that takes longer than this over one message is given up.
const IO_LIMIT: Duration = Duration::from_secs(60);
/// How often a fresh name is tried for the folder of a socket.
const MAX_FOLDER_TRIES: u32 = 64;

/// Serves readers until it is dropped.
pub(crate) struct Server {
    socket: PathBuf,
    path_file: PathBuf,
    /// A folder made for the socket, because its path in the log would be too long.
    own_folder: Option<PathBuf>,
    state: Arc<ServerState>,
    acceptor: Option<JoinHandle<()>>,
}

struct ServerState {
    view: Arc<View>,
    damage: Option<Damage>,
    /// Whether this process is the log's writer, and not another reader.
    writes: bool,
    is_closing: AtomicBool,
    connections: Mutex<Vec<Connection>>,
}

struct Connection {
    stream: UnixStream,
    thread: JoinHandle<()>,
}

impl Server {
    /// Starts to serve. The caller holds the lock, so a socket that is already there is stale.
    pub(crate) fn start(view: Arc<View>, damage: Option<Damage>, writes: bool) -> io::Result<Server> {
        let (socket, own_folder) = socket_path(view.dir())?;
        let path_file = view.dir().join(PATH_FILE);
        files::remove(&socket)?;
        let listener = UnixListener::bind(&socket)?;
        files::make_file_private(&socket)?;
        files::write_whole(&path_file, socket.as_os_str().as_bytes())?;
        let state = Arc::new(ServerState {
            view,
            damage,
            writes,
            is_closing: AtomicBool::new(false),
            connections: Mutex::new(Vec::new()),
        });
        let accepting = Arc::clone(&state);
        let acceptor = thread::Builder::new()
            .name("waxlog-readers".to_owned())
            .spawn(move || accepting.accept(&listener))?;
        Ok(Server { socket, path_file, own_folder, state, acceptor: Some(acceptor) })
    }
}

/// The socket's path: in the log's folder when it fits into a socket address.
fn socket_path(dir: &Path) -> io::Result<(PathBuf, Option<PathBuf>)> {
    let near = std::path::absolute(dir)?.join(SOCKET_FILE);
    if SocketAddr::from_pathname(&near).is_ok() {
        return Ok((near, None));
    }
    for n in 0..MAX_FOLDER_TRIES {
        let folder = std::env::temp_dir().join(format!("waxlog-{}-{n}", std::process::id()));
        match files::create_new_private_dir(&folder) {
            Ok(()) => return Ok((folder.join(SOCKET_FILE), Some(folder))),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other(format!("no free folder for a socket in {}", std::env::temp_dir().display())))
}

impl ServerState {
    fn accept(self: Arc<ServerState>, listener: &UnixListener) {
        for stream in listener.incoming() {
            if self.is_closing.load(Ordering::SeqCst) {
                return;
            }
            let accepted = stream.and_then(|stream| self.take(stream));
            if let Err(error) = accepted {
                log::warn!("a reader of the log {} was not served: {error}", self.view.dir().display());
            }
        }
    }

    fn take(self: &Arc<ServerState>, stream: UnixStream) -> io::Result<()> {
        let mut connections = lock(&self.connections);
        connections.retain(|connection| !connection.thread.is_finished());
        if connections.len() >= MAX_CONNECTIONS {
            return Err(io::Error::other(format!("{MAX_CONNECTIONS} readers are served already")));
        }
        stream.set_write_timeout(Some(IO_LIMIT))?;
        let served = stream.try_clone()?;
        let state = Arc::clone(self);
        let thread =
            thread::Builder::new().name("waxlog-reader".to_owned()).spawn(move || state.serve(served))?;
        connections.push(Connection { stream, thread });
        Ok(())
    }

    /// Answers until the reader goes away or asks what cannot be read.
    fn serve(&self, mut stream: UnixStream) {
        while let Ok(question) = receive::<Question>(&mut stream, MAX_QUESTION_BYTES) {
            if send(&mut stream, &self.answer(&question), MAX_ANSWER_BYTES).is_err() {
                return;
            }
        }
    }

    fn answer(&self, question: &Question) -> Answer {
        let answer = match question {
            Question::Damage => Ok(Answer::Damage(self.damage.clone())),
            Question::Streams => self.view.streams().map(Answer::Streams),
            Question::Page(query) => self.view.page(query).map(Answer::Page),
            Question::Writes => Ok(Answer::Writes(self.writes)),
        };
        answer.unwrap_or_else(|error| Answer::Failed(error.to_string()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.state.is_closing.store(true, Ordering::SeqCst);
        // The acceptor sees the flag when somebody connects.
        let woken = UnixStream::connect(&self.socket).is_ok();
        let leftovers = [Some(&self.path_file), Some(&self.socket), self.own_folder.as_ref()];
        for path in leftovers.into_iter().flatten() {
            if let Err(error) = files::remove(path) {
                log::warn!("cannot remove {}: {error}", path.display());
            }
        }
        if let Some(acceptor) = self.acceptor.take().filter(|_| woken) {
            let _ = acceptor.join();
        }
        for connection in std::mem::take(&mut *lock(&self.state.connections)) {
            let _ = connection.stream.shutdown(Shutdown::Both);
            let _ = connection.thread.join();
        }
    }
}

/// A reader's end of the connection.
pub(crate) struct Client {
    dir: PathBuf,
    stream: Mutex<UnixStream>,
}

impl Client {
    /// Connects to the holder and asks what it knows of damage.
    pub(crate) fn connect(dir: &Path) -> Result<(Client, Option<Damage>), LogError> {
        let client =
            Client { dir: dir.to_path_buf(), stream: Mutex::new(dial(dir).map_err(|e| holder(dir, e))?) };
        let damage = match client.ask(&Question::Damage)? {
            Answer::Damage(damage) => damage,
            other => return Err(client.unexpected(&other)),
        };
        Ok((client, damage))
    }

    pub(crate) fn streams(&self) -> Result<Vec<StreamInfo>, LogError> {
        match self.ask(&Question::Streams)? {
            Answer::Streams(streams) => Ok(streams),
            other => Err(self.unexpected(&other)),
        }
    }

    pub(crate) fn page(&self, query: &Query) -> Result<Vec<Vec<u8>>, LogError> {
        match self.ask(&Question::Page(query.clone()))? {
            Answer::Page(page) => Ok(page),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Whether the holder may append to the log.
    pub(crate) fn holder_writes(&self) -> Result<bool, LogError> {
        match self.ask(&Question::Writes)? {
            Answer::Writes(writes) => Ok(writes),
            other => Err(self.unexpected(&other)),
        }
    }

    fn ask(&self, question: &Question) -> Result<Answer, LogError> {
        let mut stream = lock(&self.stream);
        send(&mut *stream, question, MAX_QUESTION_BYTES)
            .and_then(|()| receive(&mut *stream, MAX_ANSWER_BYTES))
            .map_err(|error| holder(&self.dir, error))
    }

    fn unexpected(&self, answer: &Answer) -> LogError {
        let reason = match answer {
            Answer::Failed(reason) => reason.clone(),
            _ => "it answered another question".to_owned(),
        };
        LogError::Holder { path: self.dir.clone(), reason }
    }
}

fn dial(dir: &Path) -> io::Result<UnixStream> {
    let path = std::ffi::OsString::from_vec(fs::read(dir.join(PATH_FILE))?);
    let stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(IO_LIMIT))?;
    stream.set_write_timeout(Some(IO_LIMIT))?;
    Ok(stream)
}

fn holder(dir: &Path, error: io::Error) -> LogError {
    LogError::Holder { path: dir.to_path_buf(), reason: error.to_string() }
}
