/**
 * Multicast groups of a device: which QPs receive packets sent to a GID. The table is in the device; the driver chains its
 * entries.
 *
 *     index   0 … hash entries − 1    first entry of each hash value, found by MGID_HASH
 *             … entries − 1           entries that continue a chain, handed out here
 *
 * Source: interface sheet 3.18, 5.6; Linux 6.1, drivers/net/ethernet/mellanox/mlx4/mcg.c (mlx4_qp_attach_common,
 * mlx4_qp_detach_common).
 */
import { mcgHead, mcgMember, mcgMembersMax, mgidHash } from '../abi/index.ts';
import { log2Exact, viewOf } from '../base/index.ts';
import type { CommandInterface } from './command-interface.ts';
import { mcgEntryBytes } from './icm-profile.ts';
import { KernelError } from './kernel-error.ts';
import { Mutex } from './mutex.ts';
import { NumberAllocator } from './number-allocator.ts';
import type { Cpu, DriverPlatform } from './platform.ts';

const none = -1;
const { nextIndex, memberCount, mgid } = mcgHead.fields;
const membersMax = mcgMembersMax(log2Exact(mcgEntryBytes));

/** Commands by which software reaches the table. */
type TableCommands = Pick<CommandInterface, 'executeWithMailbox' | 'query'>;

/** An entry as it is in the device, with its index and that of the previous entry in its chain. */
interface Found {
  readonly index: number;
  readonly previous: number;
  readonly entry: Uint8Array;
}

export class MulticastTable {
  readonly #commands: TableCommands;
  readonly #lock: Mutex;
  readonly #overflow: NumberAllocator;

  /** @param entryCount entries of the whole table, half of which begin a chain */
  constructor(platform: Pick<DriverPlatform, 'newSignal'>, commands: TableCommands, entryCount: number) {
    this.#commands = commands;
    this.#lock = new Mutex(() => platform.newSignal());
    this.#overflow = new NumberAllocator({
      name: 'multicast entry',
      count: entryCount,
      reserved: entryCount / 2,
      end: entryCount,
      mask: entryCount - 1,
      reuse: 'roundRobin',
    });
  }

  /** Entries that continue a chain. */
  get overflowCount(): number {
    return this.#overflow.taken;
  }

  /** Makes a QP a member of a group. @throws KernelError ENOMEM when the group or the table is full */
  attach(cpu: Cpu, gid: Uint8Array, qpn: number, blocksLoopback: boolean): Promise<void> {
    return this.#lock.run(cpu, async () => {
      const found = await this.#find(cpu, gid);
      const isNew = found.index === none;
      const { entry } = found;
      const view = viewOf(entry);
      const count = memberCount.get(view, 0);
      if (count === membersMax) throw new KernelError('ENOMEM', `the group has ${membersMax} members`);
      if (placeOf(view, qpn) !== none) return;
      const index = isNew ? this.#overflow.allocate() : found.index;
      if (index === none) throw new KernelError('ENOMEM', 'no multicast entry is left');
      try {
        mgid.set(view, 0, gid);
        setMember(view, count, qpn, blocksLoopback);
        memberCount.set(view, 0, count + 1);
        await this.#write(cpu, index, entry);
        if (isNew) await this.#link(cpu, found.previous, index);
      } catch (error) {
        if (isNew) this.#overflow.release(index);
        throw error;
      }
    });
  }

  /** @throws KernelError EINVAL for a QP that is not a member */
  detach(cpu: Cpu, gid: Uint8Array, qpn: number): Promise<void> {
    return this.#lock.run(cpu, async () => {
      const { index, previous, entry } = await this.#find(cpu, gid);
      const view = viewOf(entry);
      const place = index === none ? none : placeOf(view, qpn);
      if (place === none)
        throw new KernelError('EINVAL', `QP 0x${qpn.toString(16)} is no member of the group`);
      const last = memberCount.get(view, 0) - 1;
      const at = (member: number): number => mcgHead.sizeBytes + member * mcgMember.sizeBytes;
      entry.copyWithin(at(place), at(last), at(last + 1));
      entry.fill(0, at(last), at(last + 1));
      memberCount.set(view, 0, last);
      await this.#write(cpu, index, entry);
      if (last === 0) await this.#unlink(cpu, index, previous, entry);
    });
  }

  /** Finds the entry of a group. Without one, returns index -1, an empty entry and the end of the chain to which it would be added. */
  async #find(cpu: Cpu, gid: Uint8Array): Promise<Found> {
    const fill = (bytes: Uint8Array, at: number): void => mgidHash.encodeInto({ mgid: gid }, bytes, at);
    let index = await this.#commands.executeWithMailbox(cpu, 'MGID_HASH', {}, fill);
    let previous = none;
    for (;;) {
      const entry = await this.#read(cpu, index);
      const view = viewOf(entry);
      // Only the first entry of a chain may be empty.
      if (memberCount.get(view, 0) === 0 && previous === none) return { index, previous, entry };
      if (mgid.get(view, 0).every((byte, at) => byte === gid[at])) return { index, previous, entry };
      previous = index;
      index = nextIndex.get(view, 0);
      if (index === 0) return { index: none, previous, entry: new Uint8Array(mcgEntryBytes) };
    }
  }

  /** Links a chain to an entry, or ends it with 0. */
  async #link(cpu: Cpu, from: number, to: number): Promise<void> {
    const entry = await this.#read(cpu, from);
    nextIndex.set(viewOf(entry), 0, to);
    await this.#write(cpu, from, entry);
  }

  /** Removes an entry without members from its chain: the first entry is replaced by its successor. */
  async #unlink(cpu: Cpu, index: number, previous: number, entry: Uint8Array): Promise<void> {
    const next = nextIndex.get(viewOf(entry), 0);
    if (previous !== none) {
      await this.#link(cpu, previous, next);
      this.#overflow.release(index);
      return;
    }
    const successor = next === 0 ? entry : await this.#read(cpu, next);
    if (next === 0) mgid.set(viewOf(entry), 0, new Uint8Array(16));
    await this.#write(cpu, index, successor);
    if (next !== 0) this.#overflow.release(next);
  }

  #read(cpu: Cpu, index: number): Promise<Uint8Array> {
    return this.#commands.query(cpu, 'READ_MCG', { inputModifier: index }, (bytes, at) =>
      bytes.slice(at, at + mcgEntryBytes),
    );
  }

  async #write(cpu: Cpu, index: number, entry: Uint8Array): Promise<void> {
    await this.#commands.executeWithMailbox(cpu, 'WRITE_MCG', { inputModifier: index }, (bytes, at) =>
      bytes.set(entry, at),
    );
  }
}

function placeOf(view: DataView, qpn: number): number {
  const count = memberCount.get(view, 0);
  for (let place = 0; place < count; place++)
    if (mcgMember.fields.qpn.get(view, mcgHead.sizeBytes + place * mcgMember.sizeBytes) === qpn) return place;
  return none;
}

function setMember(view: DataView, place: number, qpn: number, blocksLoopback: boolean): void {
  const at = mcgHead.sizeBytes + place * mcgMember.sizeBytes;
  mcgMember.fields.qpn.set(view, at, qpn);
  mcgMember.fields.blockLoopback.set(view, at, blocksLoopback ? 1 : 0);
}
