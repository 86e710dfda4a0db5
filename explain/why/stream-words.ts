/** Errors of streams in words: layer, type and code of a Terminate (RFC 5040, 4.8; RFC 5041, 7; RFC 5044, 8; RFC 6581, 8). */
import { IwarpError } from '../../protocol/iwarp/index.ts';

const { OPERATION_CATASTROPHIC_STREAM, OPERATION_CATASTROPHIC_ALL } = IwarpError;

const words: Readonly<Record<number, string>> = {
  [IwarpError.RDMAP_LOCAL_CATASTROPHIC]: 'RDMAP, local catastrophic error',
  [IwarpError.PROTECTION_STAG_INVALID]: 'RDMAP, remote protection: invalid STag',
  [IwarpError.PROTECTION_BOUNDS]: 'RDMAP, remote protection: base or bounds violation',
  [IwarpError.PROTECTION_ACCESS_RIGHTS]: 'RDMAP, remote protection: access rights violation',
  [IwarpError.PROTECTION_STAG_OF_OTHER_STREAM]:
    'RDMAP, remote protection: STag not associated with the stream',
  [IwarpError.PROTECTION_OFFSET_WRAPS]: 'RDMAP, remote protection: tagged offset wraps',
  [IwarpError.PROTECTION_CANNOT_INVALIDATE]: 'RDMAP, remote protection: STag cannot be invalidated',
  [IwarpError.PROTECTION_OTHER]: 'RDMAP, remote protection: unspecified error',
  [IwarpError.OPERATION_RDMAP_VERSION]: 'RDMAP, remote operation: invalid version of RDMAP',
  [IwarpError.OPERATION_UNEXPECTED_OPCODE]: 'RDMAP, remote operation: unexpected opcode',
  [OPERATION_CATASTROPHIC_STREAM]: 'RDMAP, remote operation: catastrophic error of this stream',
  [OPERATION_CATASTROPHIC_ALL]: 'RDMAP, remote operation: catastrophic error of the card',
  [IwarpError.OPERATION_CANNOT_INVALIDATE]: 'RDMAP, remote operation: STag cannot be invalidated',
  [IwarpError.OPERATION_OTHER]: 'RDMAP, remote operation: unspecified error',
  [IwarpError.DDP_LOCAL_CATASTROPHIC]: 'DDP, local catastrophic error',
  [IwarpError.TAGGED_STAG_INVALID]: 'DDP, tagged buffer: invalid STag',
  [IwarpError.TAGGED_BOUNDS]: 'DDP, tagged buffer: base or bounds violation',
  [IwarpError.TAGGED_STAG_OF_OTHER_STREAM]: 'DDP, tagged buffer: STag not associated with the stream',
  [IwarpError.TAGGED_OFFSET_WRAPS]: 'DDP, tagged buffer: tagged offset wraps',
  [IwarpError.TAGGED_VERSION]: 'DDP, tagged buffer: invalid version of DDP',
  [IwarpError.UNTAGGED_QUEUE]: 'DDP, untagged buffer: invalid queue number',
  [IwarpError.UNTAGGED_NO_BUFFER]: 'DDP, untagged buffer: no buffer available',
  [IwarpError.UNTAGGED_MESSAGE]: 'DDP, untagged buffer: message number out of range',
  [IwarpError.UNTAGGED_OFFSET]: 'DDP, untagged buffer: invalid message offset',
  [IwarpError.UNTAGGED_TOO_LONG]: 'DDP, untagged buffer: message too long for the buffer',
  [IwarpError.UNTAGGED_VERSION]: 'DDP, untagged buffer: invalid version of DDP',
  [IwarpError.MPA_CONNECTION_LOST]: 'MPA: TCP connection closed or lost',
  [IwarpError.MPA_CRC]: 'MPA: CRC of an FPDU is wrong',
  [IwarpError.MPA_MARKER]: 'MPA: marker and length of an FPDU disagree',
  [IwarpError.MPA_FRAME]: 'MPA: invalid request or reply',
  [IwarpError.MPA_LOCAL_CATASTROPHIC]: 'MPA: local catastrophic error',
  [IwarpError.MPA_INBOUND_READS]: 'MPA: not enough inbound READs',
  [IwarpError.MPA_NO_COMMON_READY]: 'MPA: no common ready-to-receive message',
};

/** An error as a Terminate names it: number and words. */
export const terminateText = (error: number): string =>
  `0x${error.toString(16).padStart(4, '0')}: ${words[error] ?? 'an error that no document defines'}`;
