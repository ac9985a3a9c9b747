//! Passes the instance lock to a guard over the control socket, together with its assignment.
//!
//! The guard does not inherit it: its own children would inherit it, too, and a task could then release the
//! lock. Once it is sent, the lock is held even if the worker dies before the guard has read it. A guard that
//! ends without having read it releases it by its end.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use tokio::io::Interest;
use tokio::net::UnixStream;

/// Sends the beginning of `bytes` together with `lock_file`; returns how many bytes were sent.
pub(crate) async fn send_with_fd(
    control: &UnixStream,
    bytes: &[u8],
    lock_file: Option<&File>,
) -> io::Result<usize> {
    let send = || {
        let files: Vec<_> = lock_file.map(AsFd::as_fd).into_iter().collect();
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut with = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() && !with.push(SendAncillaryMessage::ScmRights(&files)) {
            return Err(io::Error::other("there is no room for a descriptor"));
        }
        Ok(sendmsg(control, &[IoSlice::new(bytes)], &mut with, SendFlags::NOSIGNAL)?)
    };
    loop {
        control.writable().await?;
        match control.try_io(Interest::WRITABLE, send) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            answer => return answer,
        }
    }
}

/// Receives the first byte from the worker, with the descriptor; `None`: the worker has ended.
pub(super) fn receive_with_fd(
    control: impl AsFd,
) -> rustix::io::Result<Option<(u8, Option<OwnedFd>)>> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut with = RecvAncillaryBuffer::new(&mut space);
    let mut into = [IoSliceMut::new(&mut byte)];
    // CLOEXEC: no child of this process inherits it.
    let received = recvmsg(control, &mut into, &mut with, RecvFlags::CMSG_CLOEXEC)?;
    let files = with.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    let lock_file = files.flatten().next();
    Ok((received.bytes > 0).then_some((byte[0], lock_file)))
}
