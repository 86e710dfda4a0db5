/**
 * Errors of a stream as a Terminate names them: layer, type and code in one number, 0xLTCC. Source: RFC 5040, 4.8; RFC 5041, 7;
 * RFC 5044, 8; RFC 6581, 8.
 */

/** Result of a check that found nothing wrong: a local catastrophic error of RDMAP has the number 0. */
export const NO_ERROR = -1;

export const IwarpError = {
  RDMAP_LOCAL_CATASTROPHIC: 0x0000,
  // Remote protection.
  PROTECTION_STAG_INVALID: 0x0100,
  PROTECTION_BOUNDS: 0x0101,
  PROTECTION_ACCESS_RIGHTS: 0x0102,
  PROTECTION_STAG_OF_OTHER_STREAM: 0x0103,
  PROTECTION_OFFSET_WRAPS: 0x0104,
  PROTECTION_CANNOT_INVALIDATE: 0x0109,
  PROTECTION_OTHER: 0x01ff,
  // Remote operation.
  OPERATION_RDMAP_VERSION: 0x0205,
  OPERATION_UNEXPECTED_OPCODE: 0x0206,
  OPERATION_CATASTROPHIC_STREAM: 0x0207,
  OPERATION_CATASTROPHIC_ALL: 0x0208,
  OPERATION_CANNOT_INVALIDATE: 0x0209,
  OPERATION_OTHER: 0x02ff,
  DDP_LOCAL_CATASTROPHIC: 0x1000,
  TAGGED_STAG_INVALID: 0x1100,
  TAGGED_BOUNDS: 0x1101,
  TAGGED_STAG_OF_OTHER_STREAM: 0x1102,
  TAGGED_OFFSET_WRAPS: 0x1103,
  TAGGED_VERSION: 0x1104,
  UNTAGGED_QUEUE: 0x1201,
  UNTAGGED_NO_BUFFER: 0x1202,
  UNTAGGED_MESSAGE: 0x1203,
  UNTAGGED_OFFSET: 0x1204,
  UNTAGGED_TOO_LONG: 0x1205,
  UNTAGGED_VERSION: 0x1206,
  MPA_CONNECTION_LOST: 0x2001,
  MPA_CRC: 0x2002,
  MPA_MARKER: 0x2003,
  MPA_FRAME: 0x2004,
  MPA_LOCAL_CATASTROPHIC: 0x2005,
  MPA_INBOUND_READS: 0x2006,
  MPA_NO_COMMON_READY: 0x2007,
} as const;

const known: ReadonlySet<number> = new Set(Object.values(IwarpError));

/** Whether a document defines this error. */
export const isKnownError = (error: number): boolean => known.has(error);

export const ErrorLayer = { RDMAP: 0, DDP: 1, MPA: 2 } as const;

export const layerOf = (error: number): number => error >>> 12;
export const typeOf = (error: number): number => (error >>> 8) & 0xf;
export const codeOf = (error: number): number => error & 0xff;
export const errorOf = (layer: number, type: number, code: number): number =>
  (layer << 12) | (type << 8) | code;
