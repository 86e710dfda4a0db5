/**
 * The headers of a MAD's packet as software writes them into the WQE of QP0 or QP1: LRH, BTH, DETH. The port fills in its LID, the
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
    virtualLane: bits8(0, 7, 4),
    serviceLevel: bits8(1, 7, 4),
    linkNextHeader: bits8(1, 1, 0),
    destinationLid: u16(2),
    packetLength: bits16(4, 10, 0),
    sourceLid: u16(6),
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
const managementLane = 15;
/** A neighbour whose LID is not known, as on a directed route. */
export const permissiveLid = 0xffff;

/** The QPs of management: QP0, whose packets go by lane 15 and have no Q_Key, and QP1. */
export type ManagementService = 'subnet' | 'general';

/** Destination of a MAD, and its sequence number among those of its sender. */
export interface ManagementHeaderParts {
  readonly lid: number;
  readonly serviceLevel: number;
  readonly psn: number;
}

/** Writes them at `at`, for the same QP of the port with a given LID; the device fills in its own, unless that is permissive. */
export function managementHeaders(
  bytes: Uint8Array,
  at: number,
  { lid, serviceLevel, psn }: ManagementHeaderParts,
  service: ManagementService,
): void {
  const isSubnet = service === 'subnet';
  const qpn = isSubnet ? 0 : generalServicesQpn;
  headers.encodeInto(
    {
      virtualLane: isSubnet ? managementLane : 0,
      serviceLevel,
      linkNextHeader: nextIsBth,
      destinationLid: lid,
      sourceLid: lid === permissiveLid ? permissiveLid : 0,
      packetLength: (managementHeadersBytes + madBytes + icrcBytes) / 4,
      opcode: udSendOnly,
      partitionKey: defaultPkey,
      destinationQp: qpn,
      psn,
      queueKey: isSubnet ? 0 : generalServicesQkey,
      sourceQp: qpn,
    },
    bytes,
    at,
  );
}
