/** VLAN tags inserted, removed and filtered; groups by their hashes. */
import { describe, expect, it } from 'vitest';
import { nicBits } from '../../abi/nic/index.ts';
import { toHex } from '../../base/bytes.ts';
import { withField } from '../../base/registers.ts';
import { boundBench, frameBetween, type NicMachine, US } from './testing/nic-bench.ts';

const controlOn = withField(withField(0, nicBits.ctrl.setLinkUp, 1), nicBits.ctrl.vlanMode, 1);
/** EN, LPE, BAM. */
const receiveOn = 0x8022;
const filterOn = withField(receiveOn, nicBits.rctl.vlanFilter, 1);
/** Priority 5, drop eligible, VLAN 0x123. */
const tag = 0xb123;

/** The frame with a tag after its addresses, as on the cable. */
const tagged = (frame: Uint8Array, value: number): Uint8Array =>
  Uint8Array.of(...frame.subarray(0, 12), 0x81, 0x00, value >> 8, value & 0xff, ...frame.subarray(12));

async function vlanBench() {
  const made = await boundBench(16, { ethernet: { mtuBytes: 1504 } });
  await made.a.write('ctrl', controlOn);
  await made.b.write('ctrl', controlOn);
  return made;
}

/** Sends frames that are contiguous in memory, one descriptor each. */
async function sendAll(a: NicMachine, run: (ps: number) => Promise<void>, frames: readonly Uint8Array[]) {
  for (const [index, frame] of frames.entries()) a.putFrame(index, frame);
  await a.write('tdt', frames.length);
  await run(20 * US);
}

describe('a tag (IEEE 802.1Q, 9.6)', () => {
  it('8254x manual 3.3.3: is inserted after the addresses, all 16 bits of it, and a frame without VLE is unchanged', async () => {
    const { a, b, run } = await vlanBench();
    await b.write('ctrl', 1 << 6);
    const frame = frameBetween(0, 1, 200);
    a.putFrame(0, frame, { insertTag: 1, special: tag });
    a.putFrame(1, frame, { special: tag });
    await a.write('tdt', 2);
    await run(20 * US);
    expect([0, 1].map((index) => toHex(b.received(index)))).toEqual([
      toHex(tagged(frame, tag)),
      toHex(frame),
    ]);
    expect(b.receiveDescriptor(0)).toMatchObject({ isTagged: 0, special: 0, length: 204 });
    expect(a.nic.counters.tagsInserted).toBe(1);
  });

  it('8254x manual 3.2.3: is removed, and stored in the last descriptor; its bytes were on the cable', async () => {
    const { a, b, run } = await vlanBench();
    const frame = frameBetween(0, 1, 1514, 9);
    await b.write('rxbuf', 1024);
    a.putFrame(0, frame, { insertTag: 1, special: tag });
    await a.write('tdt', 1);
    await run(20 * US);
    const parts = [b.receiveDescriptor(0), b.receiveDescriptor(1)];
    expect(parts.map(({ length, isTagged, special }) => [length, isTagged, special])).toEqual([
      [1024, 0, 0],
      [490, 1, tag],
    ]);
    expect(toHex(b.received(0)) + toHex(b.received(1))).toBe(toHex(frame));
    // 1514, the tag and the FCS, as counted by the sending port, the receiving port, and the registers of both.
    const { port, counters } = b.nic;
    expect([a.nic.port.transmitted.bytes, port.received.deliveredBytes]).toEqual([1522, 1522]);
    expect([await a.read('gotcl'), await b.read('gorcl')]).toEqual([1522, 1522]);
    expect([counters.deliveredBytes, counters.deliveredTags]).toEqual([1514, 1]);
  });

  it('takes the time of its 4 bytes', async () => {
    const busyPsOf = async (insertTag: 0 | 1): Promise<number> => {
      const { a, run } = await vlanBench();
      const before = a.nic.port.busyPs;
      a.putFrame(0, frameBetween(0, 1, 1000), { insertTag, special: tag });
      await a.write('tdt', 1);
      await run(20 * US);
      return a.nic.port.busyPs - before;
    };
    // 800 ps a byte at 10 Gb/s.
    expect((await busyPsOf(1)) - (await busyPsOf(0))).toBe(3200);
  });

  it('is inserted after the checksum, and the sum of a received frame excludes it', async () => {
    const { a, b, run } = await vlanBench();
    await b.write('rxcsum', 14);
    const frame = frameBetween(0, 1, 114);
    a.putFrame(0, frame, {
      insertTag: 1,
      special: 7,
      insertChecksum: 1,
      checksumStart: 14,
      checksumOffset: 20,
    });
    await a.write('tdt', 1);
    await run(20 * US);
    // The checksum makes the sum over its range equal the complement of the field's initial value: all ones minus that value.
    const field = (frame[20]! << 8) | frame[21]!;
    const seen = b.receiveDescriptor(0).checksum;
    expect((seen + field) % 0xffff).toBe(0);
    expect(toHex(b.received(0).subarray(0, 20))).toBe(toHex(frame.subarray(0, 20)));
  });

  it('that exceeds the cable’s limit stops the ring', async () => {
    const { a, run } = await vlanBench();
    a.putFrame(0, frameBetween(0, 1, 1515), { insertTag: 1, special: 1 });
    await a.write('tdt', 1);
    await run(20 * US);
    expect([a.nic.counters.programmingErrors, a.transmitDescriptor(0).error]).toEqual([1, 1]);
  });

  it('is unchanged without VME, and in frames that end within it', async () => {
    const { a, b, run } = await boundBench(16, { ethernet: { mtuBytes: 1504 } });
    const frame = tagged(frameBetween(0, 1, 100), tag);
    await sendAll(a, run, [frame]);
    expect(toHex(b.received(0))).toBe(toHex(frame));
    expect(b.receiveDescriptor(0)).toMatchObject({ isTagged: 0, special: 0 });
  });

  it('of a frame of minimum length leaves 56 bytes', async () => {
    const { a, b, run } = await vlanBench();
    await sendAll(a, run, [tagged(frameBetween(0, 1, 20), 1)]);
    expect(b.receiveDescriptor(0)).toMatchObject({ isTagged: 1, special: 1, length: 56 });
  });
});

describe('the filter of VLANs (VFTA)', () => {
  it('accepts those whose bit is set, for any priority, and frames without a tag', async () => {
    const { a, b, run } = await vlanBench();
    await b.write('rctl', filterOn);
    // VLAN 0x123 is bit 3 of dword 9.
    await b.write('vfta', 1 << 3, 4 * 9);
    const frames = [0x0123, 0xe123, 0x0122, 0x0000, 0x0523].map((value) =>
      tagged(frameBetween(0, 1, 100), value),
    );
    await sendAll(a, run, [...frames, frameBetween(0, 1, 100)]);
    const { counters } = b.nic;
    expect([counters.delivered, counters.filteredVlans, counters.filtered]).toEqual([3, 3, 0]);
    expect([0, 1, 2].map((index) => b.receiveDescriptor(index).special)).toEqual([0x0123, 0xe123, 0]);
    expect(await b.read('rxfilt')).toBe(3);
    expect(await b.read('vfta', 4 * 9)).toBe(8);
    await b.write('rctl', receiveOn);
    a.putFrame(6, frames[2]!);
    await a.write('tdt', 7);
    await run(20 * US);
    expect(counters.delivered).toBe(4);
  });

  it('is empty after a reset', async () => {
    const { b, run } = await vlanBench();
    await b.write('vfta', 0xffff_ffff);
    await b.write('mta', 0xffff_ffff, 508);
    await b.write('ctrl', 1 << 26);
    await run(100 * US);
    expect([await b.read('vfta'), await b.read('mta', 508)]).toEqual([0, 0]);
  });
});

describe('the table of groups (MTA)', () => {
  /** 33-33-ff-12-34-56: its last 16 bits are 0x5634, read from the last byte up; MO leaves these 12. */
  const group = [0x33, 0x33, 0xff, 0x12, 0x34, 0x56];
  it.each([
    [0, 0x563],
    [1, 0xac6],
    [2, 0x58d],
    [3, 0x634],
  ])('8254x manual 13.4.22: RCTL.MO = %i selects bit %i', async (offset, hash) => {
    const { a, b, run } = await boundBench();
    await b.write('rctl', withField(receiveOn, nicBits.rctl.multicastOffset, offset));
    const frame = frameBetween(0, 1, 100);
    frame.set(group);
    await b.write('mta', ~(1 << (hash & 31)), 4 * (hash >> 5));
    await sendAll(a, run, [frame]);
    expect([b.nic.counters.delivered, b.nic.counters.filtered]).toEqual([0, 1]);
    await b.write('mta', 1 << (hash & 31), 4 * (hash >> 5));
    a.putFrame(1, frame);
    await a.write('tdt', 2);
    await run(20 * US);
    expect([b.nic.counters.delivered, b.nic.counters.filtered]).toEqual([1, 1]);
  });
});
