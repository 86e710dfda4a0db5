/**
 * The headers of a MAD's packet as software writes them into the WQE of QP1: LRH, BTH, DETH. The port fills in its LID, the
 * CRCs and nothing else. Driver rooms do not import `wire/`, so this file declares the three headers as one layout; a spec
 * holds it to the bytes that Linux wrote (golden capture x-kernel-mads).
 */
import { generalServicesQkey, generalServicesQpn, madBytes } from '../../abi/index.ts';
import { bits8, bits16, bits32, layout, u8, u16, u32 } from '../../base/index.ts';

/** LRH 8, BTH 12, DETH 8: IBTA vol 1, 7.7, 9.2, 9.3.2. */
const headers = layout(
  'management headers',
  { sizeBytes: 28, byteOrder: 'big', source: 'IBTA vol 1, 7.7, 9.2, 9.3.2' },
  {
    serviceLevel: bits8(1, 7, 4),
    linkNextHeader: bits8(1, 1, 0),
    destinationLid: u16(2),
    packetLength: bits16(4, 10, 0),
    opcode: u8(8),
    partitionKey: u16(10),
    destinationQp: bits32(12, 23, 0),
    psn: bits32(16, 23, 0),
    queueKey: u32(20),
    sourceQp: bits32(24, 23, 0),
  },
);
export const managementHeadersBytes = headers.sizeBytes;

const udSendOnly = 0x64;
const nextIsBth = 2;
const icrcBytes = 4;
const defaultPkey = 0xffff;

/** Destination of a MAD, and its sequence number among those of its sender. */
export interface ManagementHeaderParts {
  readonly lid: number;
  readonly serviceLevel: number;
  readonly psn: number;
}

/** Writes them at `at`, for QP1 of the port with a given LID. */
export function managementHeaders(
  bytes: Uint8Array,
  at: number,
  { lid, serviceLevel, psn }: ManagementHeaderParts,
): void {
  headers.encodeInto(
    {
      serviceLevel,
      linkNextHeader: nextIsBth,
      destinationLid: lid,
      packetLength: (managementHeadersBytes + madBytes + icrcBytes) / 4,
      opcode: udSendOnly,
      partitionKey: defaultPkey,
      destinationQp: generalServicesQpn,
      psn,
      queueKey: generalServicesQkey,
      sourceQp: generalServicesQpn,
    },
    bytes,
    at,
  );
}
