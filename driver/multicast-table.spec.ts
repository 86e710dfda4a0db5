/**
 * Random joins and leaves of groups whose GIDs share few buckets, on a table of the bytes that WRITE_MCG wrote. The judge reads
 * the chains as the device's sheet defines them (5.6): a bucket's head, then `next` until 0. Each group occurs once, with the
 * members of a plain set.
 */
import { describe, expect, it } from 'vitest';
import { mcgEntry } from '../abi/mcg.ts';
import { Random } from '../sim/index.ts';
import { KernelError } from './kernel-error.ts';
import { MulticastTable } from './multicast-table.ts';
import { TestContext } from './testing-context.ts';

const entryCount = 16;
const bucketCount = 2;
const gidOf = (number: number): Uint8Array => Uint8Array.from([0xff, 0x12, ...Array(13).fill(0), number]);
const bucketOf = (mgid: Uint8Array): number => mgid[15]! % bucketCount;

/** The device's table, with the commands that software has for it. */
class Table {
  readonly entries = Array.from({ length: entryCount }, () => new Uint8Array(1024));

  async executeWithMailbox(
    _cpu: unknown,
    name: string,
    { inputModifier = 0 }: { readonly inputModifier?: number },
    fill: (bytes: Uint8Array, address: number) => void,
  ): Promise<number> {
    const box = new Uint8Array(1024);
    fill(box, 0);
    if (name === 'MGID_HASH') return bucketOf(box.subarray(0, 16));
    expect(name).toBe('WRITE_MCG');
    this.entries[inputModifier] = box;
    return 0;
  }

  async query<T>(
    _cpu: unknown,
    name: string,
    { inputModifier = 0 }: { readonly inputModifier?: number },
    read: (bytes: Uint8Array, address: number) => T,
  ): Promise<T> {
    expect(name).toBe('READ_MCG');
    return read(this.entries[inputModifier]!, 0);
  }

  /** Members by group, along all chains. */
  groups(): Map<number, string[]> {
    const found = new Map<number, string[]>();
    const reached = new Set<number>();
    for (let bucket = 0; bucket < bucketCount; bucket++)
      for (let index = bucket, isHead = true; isHead || index !== 0; isHead = false) {
        const { mgid, memberCount, members, nextIndex } = mcgEntry.decode(this.entries[index]!);
        expect(reached.has(index)).toBe(false);
        reached.add(index);
        if (memberCount === 0) {
          // Only a bucket without groups is empty.
          expect([isHead, nextIndex]).toEqual([true, 0]);
          break;
        }
        const number = mgid[15]!;
        expect([bucketOf(mgid), found.has(number)]).toEqual([bucket, false]);
        found.set(
          number,
          members.slice(0, memberCount).map(({ qpn, blockLoopback }) => `${qpn}/${blockLoopback}`),
        );
        index = nextIndex;
        if (index !== 0) expect(index).toBeGreaterThanOrEqual(entryCount / 2);
        if (index === 0) break;
      }
    return found;
  }
}

describe('the table of multicast groups', () => {
  it.each([1, 2])('has the members that joined and have not left, along its chains: %i', async (seed) => {
    const { machine } = await TestContext.open();
    const { cpu } = machine;
    const random = new Random(seed, 'multicast table');
    const device = new Table();
    const table = new MulticastTable(machine.platform, device, entryCount);
    const model = new Map<number, Map<number, boolean>>();
    const overflowOf = (bucket: number): number =>
      Math.max(0, [...model.keys()].filter((number) => number % bucketCount === bucket).length - 1);
    let refused = 0;
    for (let step = 0; step < 250; step++) {
      const number = random.below(14);
      const qpn = 0x200 + random.below(3);
      const known = model.get(number);
      if (random.chance(step % 80 < 40 ? 0.8 : 0.3)) {
        const blocks = random.chance(0.5);
        const isNew = known === undefined;
        const isBucketUsed = [...model.keys()].some((one) => one % bucketCount === number % bucketCount);
        const isTableFull = isNew && isBucketUsed && overflowOf(0) + overflowOf(1) === entryCount / 2;
        if (isTableFull) {
          await expect(table.attach(cpu, gidOf(number), qpn, blocks)).rejects.toMatchObject({
            code: 'ENOMEM',
          });
          refused++;
        } else {
          await table.attach(cpu, gidOf(number), qpn, blocks);
          if (known?.has(qpn) !== true) model.set(number, new Map([...(known ?? []), [qpn, blocks]]));
        }
      } else if (known?.has(qpn) === true) {
        await table.detach(cpu, gidOf(number), qpn);
        known.delete(qpn);
        if (known.size === 0) model.delete(number);
      } else {
        await expect(table.detach(cpu, gidOf(number), qpn)).rejects.toThrow(KernelError);
      }
      const found = device.groups();
      expect([...found.keys()].toSorted()).toEqual([...model.keys()].toSorted());
      for (const [group, members] of model)
        expect(found.get(group)!.toSorted()).toEqual(
          [...members].map(([member, blocks]) => `${member}/${blocks ? 1 : 0}`).toSorted(),
        );
    }
    expect(refused).toBeGreaterThan(0);
    expect(table.overflowCount).toBe(overflowOf(0) + overflowOf(1));
  });
});
