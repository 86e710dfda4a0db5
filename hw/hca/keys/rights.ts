/** Access rights of an MPT entry as RIGHT_ bits, as the translator has them. */
import {
  RIGHT_LOCAL_READ,
  RIGHT_LOCAL_WRITE,
  RIGHT_REMOTE_ATOMIC,
  RIGHT_REMOTE_READ,
  RIGHT_REMOTE_WRITE,
} from '../memory/index.ts';
import type { KeyEntry } from './key-entry.ts';

const fieldsByRight = [
  ['localReadEnabled', RIGHT_LOCAL_READ],
  ['localWriteEnabled', RIGHT_LOCAL_WRITE],
  ['remoteReadEnabled', RIGHT_REMOTE_READ],
  ['remoteWriteEnabled', RIGHT_REMOTE_WRITE],
  ['atomicEnabled', RIGHT_REMOTE_ATOMIC],
] as const;

/** Rights by which a peer writes: the region must be writable locally (IBTA vol 1, 10.6.3.1). */
export const RIGHTS_TO_WRITE = RIGHT_REMOTE_WRITE | RIGHT_REMOTE_ATOMIC;
export const REMOTE_RIGHTS = RIGHTS_TO_WRITE | RIGHT_REMOTE_READ;

export function setRights(entry: KeyEntry, rights: number): void {
  for (const [field, right] of fieldsByRight) entry.set(field, (rights & right) === 0 ? 0 : 1);
}
