/**
 * The address of a datagram's sender, for an answer to a completion. The 40 bytes before a datagram's data are a GRH or, with
 * RoCE v2 over IPv4, 20 undefined bytes and an IPv4 header; the header's own checksum says which (libibverbs:
 * get_grh_header_version). Source: rdma-core, libibverbs/verbs.c (ibv_init_ah_from_wc); IBTA vol 1, 8.3, annex A17.4.5.
 */
import { viewOf } from '../base/index.ts';
import { type AhAttr, GidTypeVerb, type GlobalRoute } from '../driver/index.ts';
import { WcFlag } from './constants.ts';
import { queryGidTable } from './device.ts';
import { createAh } from './memory.ts';
import type { IbvAh, IbvContext, IbvPd, IbvWc } from './objects.ts';
import { VerbsError } from './verbs-error.ts';

const grhBytes = 40;
const ipv4At = 20;
const ipv4HeaderBytes = 20;
const protocolUdp = 0x11;
const protocolIb = 0x1b;

/** Addresses and the rest of a route, as the receiver sees the header. */
interface Header {
  readonly source: Uint8Array;
  readonly destination: Uint8Array;
  readonly route: Pick<GlobalRoute, 'flowLabel' | 'hopLimit' | 'trafficClass'>;
  /** Types that the destination's GID may have. */
  readonly types: readonly GidTypeVerb[];
}

/**
 * The address of the sender of a datagram (ibv_init_ah_from_wc).
 * @param grh the first 40 bytes of its receive buffer; they are used if the completion has IBV_WC_GRH
 * @throws VerbsError EINVAL if the datagram was not sent to a GID of this port, e.g. to a multicast group
 */
export async function initAhFromWc(
  context: IbvContext,
  portNum: number,
  wc: IbvWc,
  grh: Uint8Array,
): Promise<AhAttr> {
  const local: AhAttr = { dlid: wc.slid, sl: wc.sl, srcPathBits: wc.dlidPathBits, isGlobal: 0, portNum };
  if ((wc.wcFlags & WcFlag.IBV_WC_GRH) === 0) return local;
  if (!(grh instanceof Uint8Array) || grh.length < grhBytes)
    throw new VerbsError(
      'ibv_init_ah_from_wc',
      'EINVAL',
      `grh has ${grh?.length} bytes, expected ${grhBytes}`,
    );
  const { source, destination, route, types } = headerIn(grh);
  const table = await queryGidTable(context, portNum);
  const own = table.find(
    ({ gid, gidType }) => types.includes(gidType) && gid.every((byte, at) => byte === destination[at]),
  );
  if (own === undefined)
    throw new VerbsError('ibv_init_ah_from_wc', 'EINVAL', 'the datagram was sent to no GID of this port');
  return { ...local, isGlobal: 1, grh: { dgid: source, sgidIndex: own.gidIndex, ...route } };
}

/** An address handle for the sender of a datagram (ibv_create_ah_from_wc). Arguments and errors as {@link initAhFromWc}. */
export const createAhFromWc = async (
  pd: IbvPd,
  wc: IbvWc,
  grh: Uint8Array,
  portNum: number,
): Promise<IbvAh> => createAh(pd, await initAhFromWc(pd.context, portNum, wc, grh));

function headerIn(grh: Uint8Array): Header {
  const view = viewOf(grh);
  if (isIpv4(grh))
    return {
      source: mapped(grh.subarray(ipv4At + 12, ipv4At + 16)),
      destination: mapped(grh.subarray(ipv4At + 16, ipv4At + 20)),
      route: { flowLabel: 0, hopLimit: grh[ipv4At + 8]!, trafficClass: grh[ipv4At + 1]! },
      types: [GidTypeVerb.IBV_GID_TYPE_ROCE_V2],
    };
  const first = view.getUint32(0);
  return {
    source: grh.slice(8, 24),
    destination: grh.slice(24, 40),
    route: { flowLabel: first & 0xf_ffff, hopLimit: grh[7]!, trafficClass: (first >>> 20) & 0xff },
    types: typesOf(grh[6]!),
  };
}

function typesOf(nextHeader: number): readonly GidTypeVerb[] {
  if (nextHeader === protocolUdp) return [GidTypeVerb.IBV_GID_TYPE_ROCE_V2];
  // Both of InfiniBand and of RoCE v1: the port has one kind.
  if (nextHeader === protocolIb) return [GidTypeVerb.IBV_GID_TYPE_IB, GidTypeVerb.IBV_GID_TYPE_ROCE_V1];
  throw new VerbsError(
    'ibv_init_ah_from_wc',
    'EINVAL',
    `the next header is 0x${nextHeader.toString(16)}, expected 0x1b or 0x11`,
  );
}

/** An IPv4 header of five words with a correct checksum; a GRH may look like one by chance. */
function isIpv4(grh: Uint8Array): boolean {
  if (grh[0]! >> 4 === 6 && grh[ipv4At] !== 0x45) return false;
  const header = viewOf(grh.subarray(ipv4At, ipv4At + ipv4HeaderBytes));
  if (header.getUint8(0) !== 0x45) return false;
  let sum = 0;
  for (let at = 0; at < ipv4HeaderBytes; at += 2) sum += header.getUint16(at);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return sum === 0xffff;
}

function mapped(address: Uint8Array): Uint8Array {
  const gid = new Uint8Array(16);
  gid.set([0xff, 0xff, ...address], 10);
  return gid;
}
