/**
 * Status of a command (HCR dword 6 [31:24], or byte 0x0f of the completion EQE) and the errno that Linux derives.
 * Source: interface sheet 3.2.
 */

export const CommandStatus = {
  OK: 0x00,
  INTERNAL_ERR: 0x01,
  /** Unknown opcode or opcode modifier. */
  BAD_OP: 0x02,
  /** A field out of range. */
  BAD_PARAM: 0x03,
  /** E.g. a command before INIT_HCA. */
  BAD_SYS_STATE: 0x04,
  /** A reserved or foreign object. */
  BAD_RESOURCE: 0x05,
  RESOURCE_BUSY: 0x06,
  EXCEED_LIM: 0x08,
  /** The object is not in the ownership the command needs. */
  BAD_RES_STATE: 0x09,
  /** A number outside the table. */
  BAD_INDEX: 0x0a,
  BAD_NVMEM: 0x0b,
  /** An ICM page that is not mapped. */
  ICM_ERROR: 0x0c,
  /** An illegal QP state transition. */
  BAD_QP_STATE: 0x10,
  BAD_SEG_PARAM: 0x20,
  /** HW2SW_MPT of a region with bound windows. */
  REG_BOUND: 0x21,
  LAM_NOT_PRE: 0x22,
  /** MAD_IFC with a malformed MAD. */
  BAD_PKT: 0x30,
  /** SET_PORT with too many VLs, CQ resize overflow. */
  BAD_SIZE: 0x40,
  MULTI_FUNC_REQ: 0x50,
} as const;
export type CommandStatus = (typeof CommandStatus)[keyof typeof CommandStatus];

/** Linux errno numbers that a command status can turn into. */
export const Errno = {
  EPERM: 1,
  EIO: 5,
  ENXIO: 6,
  EBADF: 9,
  EAGAIN: 11,
  ENOMEM: 12,
  EACCES: 13,
  EFAULT: 14,
  EBUSY: 16,
  EINVAL: 22,
  ENFILE: 23,
} as const;
export type Errno = (typeof Errno)[keyof typeof Errno];

const errnoByStatus: { readonly [status: number]: Errno | 0 } = {
  [CommandStatus.OK]: 0,
  [CommandStatus.INTERNAL_ERR]: Errno.EIO,
  [CommandStatus.BAD_OP]: Errno.EPERM,
  [CommandStatus.BAD_PARAM]: Errno.EINVAL,
  [CommandStatus.BAD_SYS_STATE]: Errno.ENXIO,
  [CommandStatus.BAD_RESOURCE]: Errno.EBADF,
  [CommandStatus.RESOURCE_BUSY]: Errno.EBUSY,
  [CommandStatus.EXCEED_LIM]: Errno.ENOMEM,
  [CommandStatus.BAD_RES_STATE]: Errno.EBADF,
  [CommandStatus.BAD_INDEX]: Errno.EBADF,
  [CommandStatus.BAD_NVMEM]: Errno.EFAULT,
  [CommandStatus.ICM_ERROR]: Errno.ENFILE,
  [CommandStatus.BAD_QP_STATE]: Errno.EINVAL,
  [CommandStatus.BAD_SEG_PARAM]: Errno.EFAULT,
  [CommandStatus.REG_BOUND]: Errno.EBUSY,
  [CommandStatus.LAM_NOT_PRE]: Errno.EAGAIN,
  [CommandStatus.BAD_PKT]: Errno.EINVAL,
  [CommandStatus.BAD_SIZE]: Errno.ENOMEM,
  [CommandStatus.MULTI_FUNC_REQ]: Errno.EACCES,
};

/** The errno (positive) a driver reports for a status; 0 for OK, EIO for a code that is not in the table. */
export const errnoOfStatus = (status: number): Errno | 0 => errnoByStatus[status] ?? Errno.EIO;

/** The status' name, or its number in hexadecimal. */
export function commandStatusName(status: number): string {
  const found = Object.entries(CommandStatus).find(([, code]) => code === status);
  return found?.[0] ?? `0x${status.toString(16)}`;
}
