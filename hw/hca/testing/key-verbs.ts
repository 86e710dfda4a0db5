/** Operations on memory keys as a driver and a user library make them: entries of the MPT and the bytes of WQEs. */
import { MptStatus, mpt } from '../../../abi/mpt.ts';
import {
  bindSegment,
  completionRequested,
  controlSegment,
  fastRegisterSegment,
  localInvalidateSegment,
} from '../../../abi/wqe.ts';
import { WqeOpcode } from '../../../abi/wqe-opcodes.ts';
import type { Initial } from '../../../base/index.ts';
import type { DataPathNode } from './data-path-bench.ts';
import { PD, type Region } from './data-path-regions.ts';

/** Puts an entry into the MPT and returns its key. */
function newKey(node: DataPathNode, fields: Initial<typeof mpt>): number {
  const index = node.writeMpt((at) => mpt.encode({ keyIndexForm: at, pd: PD, ...fields }));
  node.act(() => node.dataPath.control.mptChanged(index));
  return index << 8;
}

/** Makes a free region for fast registration with room for this many pages, as Linux writes it (mlx4_ib_alloc_mr). */
export function freeRegion(node: DataPathNode, pages: number, fields: Initial<typeof mpt> = {}): number {
  return newKey(node, {
    status: MptStatus.FREE,
    isRegion: 1,
    fastRegisterEnabled: 1,
    fastRegisterRemoteAccess: 1,
    localInvalidateEnabled: 1,
    remoteInvalidateEnabled: 1,
    mttAddress: node.writeMtt(Array.from({ length: pages }, () => -1)),
    mttEntries: pages,
    ...fields,
  });
}

export function newWindow(node: DataPathNode, type: 1 | 2, fields: Initial<typeof mpt> = {}): number {
  const enabled = type === 2 ? 1 : 0;
  return newKey(node, {
    status: type === 1 ? MptStatus.VALID : MptStatus.FREE,
    isBoundToQp: enabled,
    localInvalidateEnabled: enabled,
    remoteInvalidateEnabled: enabled,
    ...fields,
  });
}

/** The entry of a key as it lies in ICM. */
export const entryOf = (node: DataPathNode, key: number) =>
  mpt.decode(node.memory.bytes.subarray(node.icm.keyAddress(key >>> 8)).slice(0, 64));

/** The variant byte of a key, and the key with another one. */
export const variant = (key: number, byte: number): number => ((key & ~0xff) | byte) >>> 0;

function wqe(opcode: WqeOpcode, segment: Uint8Array): Uint8Array {
  const control = { opcode, ds: 1 + segment.length / 16, strongOrder: 1, completion: completionRequested };
  return Uint8Array.of(...controlSegment.encode(control), ...segment);
}

export const localInvalidate = (key: number): Uint8Array =>
  wqe(WqeOpcode.LOCAL_INVAL, localInvalidateSegment.encode({ key }));

export const bind = (fields: Initial<typeof bindSegment>): Uint8Array =>
  wqe(WqeOpcode.BIND_MW, bindSegment.encode(fields));

/** Registers the memory of a region again: its pages are put into a list in host memory. */
export function register(
  node: DataPathNode,
  key: number,
  of: Region,
  fields: Initial<typeof fastRegisterSegment> = {},
): Uint8Array {
  const first = of.address % 4096;
  const list = node.allocate(4096);
  const pageCount = Math.ceil((first + of.lengthBytes) / 4096);
  for (let page = 0; page < pageCount; page++) {
    const place = of.physical(page === 0 ? 0 : page * 4096 - first) & ~4095;
    node.view.setUint32(list + page * 8 + 4, place + 1);
  }
  return wqe(
    WqeOpcode.FMR,
    fastRegisterSegment.encode({
      key,
      pageListAddress: BigInt(list),
      startAddress: BigInt(of.address),
      lengthBytes: BigInt(of.lengthBytes),
      logPageSize: 12,
      localReadEnabled: 1,
      localWriteEnabled: 1,
      remoteReadEnabled: 1,
      remoteWriteEnabled: 1,
      atomicEnabled: 1,
      ...fields,
    }),
  );
}
