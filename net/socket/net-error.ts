/** Errors of the network part of the kernel: a typed error with the errno of the system call. Numbers are those of Linux. */

const netErrno = {
  EINTR: 4,
  EIO: 5,
  EBADF: 9,
  EAGAIN: 11,
  ENOMEM: 12,
  EFAULT: 14,
  ENODEV: 19,
  EINVAL: 22,
  EMFILE: 24,
  EPIPE: 32,
  ENOPROTOOPT: 92,
  EPROTONOSUPPORT: 93,
  EOPNOTSUPP: 95,
  EAFNOSUPPORT: 97,
  EADDRINUSE: 98,
  EADDRNOTAVAIL: 99,
  ENETDOWN: 100,
  ECONNRESET: 104,
  ENOBUFS: 105,
  EISCONN: 106,
  ENOTCONN: 107,
  ETIMEDOUT: 110,
  ECONNREFUSED: 111,
  EHOSTUNREACH: 113,
  EALREADY: 114,
  EINPROGRESS: 115,
} as const;

export type NetErrno = keyof typeof netErrno;

/** A failed call. A call that has done part of its work (bytes queued or read) returns that instead. */
export class NetError extends Error {
  override readonly name = 'NetError';
  readonly code: NetErrno;
  readonly errno: number;

  constructor(code: NetErrno, reason: string) {
    super(`${code}: ${reason}`);
    this.code = code;
    this.errno = netErrno[code];
  }
}
