/**
 * The C structures that cross into libc, declared once, for Linux on x64 and arm64: both are little-endian LP64 with the same
 * layouts here. musl has padding where glibc has 64-bit counts, so the same bytes serve both.
 *
 * Sources: Linux include/linux/socket.h (struct user_msghdr, struct cmsghdr), include/uapi/linux/{uio,un,time_types}.h,
 * include/uapi/asm-generic/poll.h. Addresses are handled as numbers: user space ends at 2^48 at most on both
 * machines unless a program asks for more.
 */
import { bytes, layout, u16, u32, u64 } from '../../../base/index.ts';

const source = 'Linux UAPI, LP64 little-endian';

export const iovec = layout(
  'struct iovec',
  { sizeBytes: 16, byteOrder: 'little', source },
  { base: u64(0, 'iov_base'), lengthBytes: u64(8, 'iov_len') },
);

export const messageHeader = layout(
  'struct msghdr',
  { sizeBytes: 56, byteOrder: 'little', source },
  {
    name: u64(0, 'msg_name'),
    nameBytes: u32(8, 'msg_namelen'),
    vectors: u64(16, 'msg_iov'),
    vectorCount: u64(24, 'msg_iovlen'),
    control: u64(32, 'msg_control'),
    controlBytes: u64(40, 'msg_controllen'),
    flags: u32(48, 'msg_flags'),
  },
);

export const controlHeader = layout(
  'struct cmsghdr',
  { sizeBytes: 16, byteOrder: 'little', source },
  {
    lengthBytes: u64(0, 'cmsg_len, header included'),
    level: u32(8, 'cmsg_level'),
    type: u32(12, 'cmsg_type'),
  },
);

export const socketAddress = layout(
  'struct sockaddr_un',
  { sizeBytes: 110, byteOrder: 'little', source },
  { family: u16(0, 'sun_family'), path: bytes(2, 108, 'sun_path, ends with NUL') },
);

export const pollEntry = layout(
  'struct pollfd',
  { sizeBytes: 8, byteOrder: 'little', source },
  { descriptor: u32(0, 'fd'), events: u16(4), returnedEvents: u16(6, 'revents') },
);

export const timeSpec = layout(
  'struct timespec',
  { sizeBytes: 16, byteOrder: 'little', source },
  { seconds: u64(0, 'tv_sec'), nanoseconds: u64(8, 'tv_nsec') },
);

/** Bytes of a control message that carries `count` descriptors, padding included (CMSG_SPACE). */
export const controlBytesOf = (count: number): number => controlHeader.sizeBytes + Math.ceil(count / 2) * 8;

export const AF_UNIX = 1;
export const SOCK_STREAM = 1;
export const SOCK_NONBLOCK = 0x800;
export const SOCK_CLOEXEC = 0x8_0000;
export const SOL_SOCKET = 1;
export const SCM_RIGHTS = 1;

export const MSG_CTRUNC = 0x8;
export const MSG_DONTWAIT = 0x40;
export const MSG_NOSIGNAL = 0x4000;
export const MSG_CMSG_CLOEXEC = 0x4000_0000;

export const POLLIN = 0x1;
export const POLLOUT = 0x4;
export const POLLRDHUP = 0x2000;

export const PROT_READ = 1;
export const PROT_WRITE = 2;
export const MAP_SHARED = 1;

export const EFD_CLOEXEC = 0x8_0000;
export const EFD_NONBLOCK = 0x800;

export const F_GETFL = 3;
export const F_SETFL = 4;
export const F_ADD_SEALS = 1033;
export const F_GET_SEALS = 1034;
export const O_ACCMODE = 3;
export const O_WRONLY = 1;
export const O_RDWR = 2;
export const O_NONBLOCK = 0x800;

export const F_SEAL_SHRINK = 0x2;
export const F_SEAL_WRITE = 0x8;
export const F_SEAL_FUTURE_WRITE = 0x10;

/** statfs(2) f_type of memfds and of tmpfs (include/uapi/linux/magic.h). */
export const TMPFS_MAGIC = 0x0102_1994;
