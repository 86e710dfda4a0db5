/** The addresses of a bench node's port of Ethernet with RoCE, and what QPs to the other node say of them. */
import type { addressPath } from '../../../abi/address-path.ts';
import { type qpc, RoceMode } from '../../../abi/qpc.ts';
import type { Initial } from '../../../base/index.ts';
import type { EthernetSide } from '../port/index.ts';
import type { BenchAddress } from './bench-address.ts';

/** The form of RoCE that packets use. */
export type RoceForm = 'v1' | 'v2 over IPv4' | 'v2 over IPv6';

/** Places in the port's tables. */
export const GID_INDEX = 2;
export const MAC_INDEX = 3;
/** UDP source port of connected QPs. */
export const SOURCE_PORT = 0xc123;
const HOP_LIMIT = 64;

/** A node is 1 or 2. */
export const macOfNode = (node: number): number => 0x0002_c900_0000 + node;

export function gidOfNode(form: RoceForm, node: number): Uint8Array {
  const gid = new Uint8Array(16);
  gid.set(form === 'v2 over IPv4' ? [...new Array<number>(10).fill(0), 0xff, 0xff, 10, 2, 0] : [0xfe, 0x80]);
  gid[15] = node;
  return gid;
}

export function macBytes(mac: number): Uint8Array {
  const view = new DataView(new ArrayBuffer(8));
  view.setBigUint64(0, BigInt(mac));
  return new Uint8Array(view.buffer, 2);
}

/** Sets up the tables of a node. */
export function setRoceTables(address: BenchAddress, side: EthernetSide, form: RoceForm, node: number): void {
  address.lid = 0;
  address.roce = side.roce;
  address.gids.fill(0);
  address.gids.set(gidOfNode(form, node), GID_INDEX * 16);
  side.roce!.isRoutable[GID_INDEX] = form === 'v1' ? 0 : 1;
  side.steering.macs[MAC_INDEX] = macOfNode(node);
}

/** Returns the primary path of a connected QP to this node. */
export const pathToNode = (form: RoceForm, node: number): Initial<typeof addressPath> => ({
  remoteLid: 0,
  sourcePathBits: MAC_INDEX,
  sourceGidIndex: GID_INDEX,
  hopLimit: HOP_LIMIT,
  remoteGid: gidOfNode(form, node),
  destinationMac: macBytes(macOfNode(node)),
});

/** Returns the RoCE fields of its context. */
export const roceFields = (form: RoceForm): Initial<typeof qpc> => ({
  roceMode: form === 'v1' ? RoceMode.V1 : RoceMode.V2,
  roceEntropy: SOURCE_PORT,
});
