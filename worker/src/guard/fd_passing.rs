//! Passes descriptors to a guard over the control socket, together with an assignment: the pipes of the task's
//! output, and the instance lock.
//!
//! The guard does not inherit them. It serves many tasks, each with pipes of its own; and its children would inherit
//! the lock, too, so that a task could release it. Once the lock is sent, it is held even if the worker dies before the
//! guard has read it. A guard that ends without having read it releases it by its end.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use tokio::io::Interest;
use tokio::net::UnixStream;

/// The most descriptors that come with one assignment.
const MAX_FILES: usize = 3;

/// Sends the beginning of `bytes` together with at most [`MAX_FILES`] descriptors; returns how many bytes were sent.
pub(crate) async fn send_with_files(
    control: &UnixStream,
    bytes: &[u8],
    files: &[BorrowedFd<'_>],
) -> io::Result<usize> {
    let send = || {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MAX_FILES))];
        let mut with = SendAncillaryBuffer::new(&mut space);
        if !with.push(SendAncillaryMessage::ScmRights(files)) {
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

/// Receives bytes from the worker, and the descriptors that come with them; 0: the worker has ended.
pub(super) fn receive_with_files(
    control: impl AsFd,
    into: &mut [u8],
    files: &mut VecDeque<OwnedFd>,
) -> rustix::io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MAX_FILES))];
    let mut with = RecvAncillaryBuffer::new(&mut space);
    // CLOEXEC: no child of this process inherits them.
    let received =
        recvmsg(control, &mut [IoSliceMut::new(into)], &mut with, RecvFlags::CMSG_CLOEXEC)?;
    for message in with.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            files.extend(received);
        }
    }
    Ok(received.bytes)
}
