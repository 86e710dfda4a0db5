/**
 * Contradictions between the headers of one packet, in words. Sources: IBTA vol 1, 7.7 (LRH), 9.2 to 9.4 (transport),
 * 10.5.2 (multicast), 13.5.1 (management); RFC 1112, 6.4 and RFC 2464, 7 (group MACs); RFC 1071 (checksums).
 */
import { bytesOf, type HeaderFields, type HeaderName } from './fields.ts';
import type { Operation } from './operations.ts';

const pathMtus = [256, 512, 1024, 2048, 4096];
const messageBytesMax = 2 ** 31;
const managementLane = 15;
const firstMulticastLid = 0xc000;
const permissiveLid = 0xffff;
const groupQp = 0xff_ffff;
const subnetManagementQp = 0;
/** Kinds of acknowledgement: bits 6 and 5 of a syndrome (9.7.5.2.1). */
const acknowledges = 0;
const reservedKind = 2;
const negative = 3;
const lastNakCode = 4;

/** The complemented 16-bit one's complement sum: zero over bytes that include a right checksum. */
export function checksumOf(bytes: Uint8Array): number {
  let sum = 0;
  for (let at = 0; at < bytes.length; at += 2) sum += bytes[at]! * 256 + (bytes[at + 1] ?? 0);
  while (sum > 0xffff) sum = (sum % 65_536) + Math.floor(sum / 65_536);
  return 0xffff - sum;
}

/**
 * Returns contradictions between an LRH and the bytes after it.
 * @param end offset after the ICRC
 */
export function linkContradictions(
  { numbers: lrh }: HeaderFields,
  grh: HeaderFields | undefined,
  { numbers: bth }: HeaderFields,
  end: number,
): string[] {
  const wrong: string[] = [];
  if (lrh['linkVersion'] !== 0) wrong.push(`LRH: LVer ${lrh['linkVersion']}`);
  if (lrh['reserved1'] !== 0 || lrh['reserved4'] !== 0) wrong.push('LRH: reserved bits are set');
  if (lrh['packetLength']! * 4 !== end) wrong.push(`LRH: PktLen ${lrh['packetLength']}, ${end} bytes`);
  const isManagement = lrh['virtualLane'] === managementLane;
  if (isManagement !== (bth['destinationQp'] === subnetManagementQp))
    wrong.push(`QP ${bth['destinationQp']} by VL ${lrh['virtualLane']}`);
  if (isManagement && grh !== undefined) wrong.push('a GRH by VL 15');
  const isGroupLid = isOfGroup(lrh['destinationLid']!);
  if (isOfGroup(lrh['sourceLid']!)) wrong.push(`its source is LID ${lrh['sourceLid']}, which is a group's`);
  const { sourceGid = '', destinationGid = 'none' } = grh?.digits ?? {};
  const isGroupGid = destinationGid.startsWith('ff');
  if (isGroupLid !== isGroupGid) wrong.push(`DLID ${lrh['destinationLid']}, DGID ${destinationGid}`);
  if (sourceGid.startsWith('ff')) wrong.push('its source is the GID of a group');
  if (isGroupGid && bth['destinationQp'] !== groupQp)
    wrong.push(`to a group, but to QP ${bth['destinationQp']}`);
  return wrong;
}

const isOfGroup = (lid: number): boolean => lid >= firstMulticastLid && lid !== permissiveLid;

/** The MAC of frames to a group; undefined if the GID is not a group's. Both in hexadecimal. */
export function macOfGroup(gid: string): string | undefined {
  const isMapped = gid.startsWith(`${'0'.repeat(20)}ffff`);
  // 224.0.0.0/4: the MAC has the low 23 bits of the address.
  if (isMapped && gid[24] === 'e')
    return `01005e${(Number.parseInt(gid.slice(26), 16) & 0x7f_ffff).toString(16).padStart(6, '0')}`;
  return gid.startsWith('ff') ? `3333${gid.slice(24)}` : undefined;
}

/** Returns contradictions between the addresses of a frame and those of its packet. */
export function addressContradictions({ digits }: HeaderFields, gid: string | undefined): string[] {
  const mac = digits['destination']!;
  const isGroupMac = Number.parseInt(mac[1]!, 16) % 2 === 1;
  const due = gid === undefined ? undefined : macOfGroup(gid);
  const wrong: string[] = [];
  if (Number.parseInt(digits['source']![1]!, 16) % 2 === 1)
    wrong.push('Ethernet: its source is the MAC of a group');
  if (due !== undefined ? due !== mac : isGroupMac) wrong.push(`Ethernet: MAC ${mac} for GID ${gid}`);
  return wrong;
}

interface Transport {
  readonly headers: readonly HeaderFields[];
  readonly operation: Operation | undefined;
  readonly payload: number;
  readonly payloadEnd: number;
}

/** Returns contradictions between BTH, extended headers and payload. */
export function transportContradictions(
  bytes: Uint8Array,
  { headers, operation, payload, payloadEnd }: Transport,
): string[] {
  const of = (name: HeaderName): HeaderFields['numbers'] | undefined =>
    headers.find((header) => header.name === name)?.numbers;
  const bth = of('BTH')!;
  const wrong: string[] = [];
  if (bth['transportVersion'] !== 0) wrong.push(`BTH: TVer ${bth['transportVersion']}`);
  if (bth['reserved4'] !== 0 || bth['reserved8'] !== 0) wrong.push('BTH: reserved bits are set');
  if (operation === undefined) return [...wrong, `BTH: no opcode is ${bth['opcode']}`];
  wrong.push(...lengthContradictions(operation, payloadEnd - payload, bth['padCount']!));
  if (bytes.subarray(payloadEnd, payloadEnd + bth['padCount']!).some((byte) => byte !== 0))
    wrong.push('BTH: its pad is not zero');
  for (const { name, numbers } of headers)
    if (bytesOf(name) <= 8 && name.endsWith('ETH'))
      for (const [field, value] of Object.entries(numbers))
        if (field.startsWith('reserved') && value !== 0) wrong.push(`${name}: reserved bits are set`);
  const reth = of('RETH');
  const carried = payloadEnd - payload;
  if (reth !== undefined) {
    const asked = reth['dmaLength']!;
    if (asked > messageBytesMax) wrong.push(`RETH: ${asked} bytes`);
    if (operation.payload === 'whole' && asked !== carried)
      wrong.push(`RETH: ${asked} bytes, the packet has ${carried}`);
    if (operation.payload === 'full' && asked <= carried)
      wrong.push(`RETH: ${asked} bytes, the first packet has ${carried}`);
  }
  const aeth = of('AETH');
  if (aeth !== undefined) wrong.push(...syndromeContradictions(aeth['syndrome']!, operation));
  return wrong;
}

function lengthContradictions({ name, payload }: Operation, bytes: number, pad: number): string[] {
  const wrong: string[] = [];
  if ((bytes + pad) % 4 !== 0) wrong.push(`BTH: ${bytes} bytes with a pad of ${pad}`);
  if (payload === 'none' && bytes + pad !== 0) wrong.push(`${name} with ${bytes} bytes`);
  if (payload === 'full' && !pathMtus.includes(bytes)) wrong.push(`${name}: ${bytes} bytes are no path MTU`);
  if (payload === 'rest' && bytes === 0) wrong.push(`${name} without payload`);
  if (bytes > pathMtus.at(-1)!) wrong.push(`${name}: ${bytes} bytes`);
  return wrong;
}

/** Only an ACKNOWLEDGE may refuse or ask for time (9.7.5.1). */
function syndromeContradictions(syndrome: number, { name }: Operation): string[] {
  const kind = (syndrome >> 5) & 3;
  const isRefusal = name.endsWith('_ACKNOWLEDGE') && !name.includes('ATOMIC');
  const isRight =
    syndrome < 0x80 &&
    kind !== reservedKind &&
    (kind !== negative || (syndrome & 0x1f) <= lastNakCode) &&
    (kind === acknowledges || isRefusal);
  return isRight ? [] : [`AETH: syndrome ${syndrome} of ${name}`];
}
