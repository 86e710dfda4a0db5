import { describe, expect, it } from 'vitest';
import { NicCause, nicBits } from '../../abi/nic/index.ts';
import { fieldOf } from '../../base/registers.ts';
import { ethernetImbalance } from '../../wire/ethernet-bench.ts';
import { DamagePlace } from '../../wire/index.ts';
import { boundBench, frameBetween, type NicBench, US, upBench } from './testing/nic-bench.ts';

describe('a NIC that is enumerated and brought up', () => {
  it('reports its identity, and brings the link up when both ends are enabled', async () => {
    const { a } = await upBench();
    expect(a.nic.pcieFunction.config).toMatchObject({
      vendorId: 0x1234,
      deviceId: 0x8254,
      classCode: 0x020000,
    });
    expect(await a.read('status')).toBe(3);
    expect(await a.read('pba')).toBe(0x0040_0040);
    expect(await a.read('ral')).toBe(0x0034_1202);
    expect(await a.read('rah')).toBe(0x8000_0100);
  });
});

describe('a frame in transfer', () => {
  it('8254x manual 3.3.3, 3.2.3: goes byte for byte from one memory to the other, with both descriptors written back', async () => {
    const { a, b, run } = await boundBench();
    const frame = frameBetween(0, 1, 1514, 3);
    a.putFrame(0, frame);
    await a.write('ims', NicCause.TXDW);
    await b.write('ims', NicCause.RXT0);
    await a.write('tdt', 1);
    await run(10 * US);
    expect(a.transmitDescriptor(0)).toMatchObject({ done: 1, error: 0, length: 1514, endOfPacket: 1 });
    expect(b.receiveDescriptor(0)).toMatchObject({ done: 1, endOfPacket: 1, length: 1514, error: 0 });
    expect([...b.received(0)]).toEqual([...frame]);
    expect(a.interrupts.map(({ vector }) => vector)).toEqual([1]);
    expect(b.interrupts.map(({ vector }) => vector)).toEqual([0]);
    expect([await a.read('tdh'), await b.read('rdh')]).toEqual([1, 1]);
  });

  it('PCIe 2.4.1: finds its data before its interrupt: the write-back is in memory when the message arrives', async () => {
    const { a, b, run } = await boundBench();
    a.putFrame(0, frameBetween(0, 1, 64));
    await b.write('ims', NicCause.RXT0);
    a.post('tdt', 1);
    for (let step = 0; step < 1000 && b.interrupts.length === 0; step++) await run(10_000);
    expect(b.receiveDescriptor(0).done).toBe(1);
  });

  it('8254x manual 3.3.3: is gathered from several buffers and scattered over several', async () => {
    const { a, b, run } = await boundBench();
    const frame = frameBetween(0, 1, 900);
    a.putFrame(0, frame.subarray(0, 13), { endOfPacket: 0, reportStatus: 0 });
    a.putFrame(1, frame.subarray(13, 14), { endOfPacket: 0, reportStatus: 0 });
    a.putFrame(2, new Uint8Array(0), { endOfPacket: 0, reportStatus: 0 });
    a.putFrame(3, frame.subarray(14));
    await b.write('rxbuf', 256);
    await a.write('tdt', 4);
    await run(10 * US);
    const parts = [0, 1, 2, 3].map((index) => b.receiveDescriptor(index));
    expect(parts.map(({ length }) => length)).toEqual([256, 256, 256, 132]);
    expect(parts.map(({ endOfPacket }) => endOfPacket)).toEqual([0, 0, 0, 1]);
    expect([0, 1, 2, 3].flatMap((index) => [...b.received(index)])).toEqual([...frame]);
    expect(a.transmitDescriptor(0).done).toBe(0);
    expect(a.transmitDescriptor(3).done).toBe(1);
  });

  it('RFC 1071: gets its checksum on the way out, and is summed on the way in', async () => {
    const { a, b, run } = await boundBench();
    // RFC 1071, section 3: 00 01 f2 03 f4 f5 f6 f7 sum to 2ddf0, folded ddf2.
    const frame = frameBetween(0, 1, 60).fill(0, 14);
    frame.set([0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7], 14);
    await b.write('rxcsum', 14);
    a.putFrame(0, frame);
    a.putFrame(1, frame, { insertChecksum: 1, checksumStart: 14, checksumOffset: 58 });
    await a.write('tdt', 2);
    await run(10 * US);
    expect(b.receiveDescriptor(0).checksum).toBe(0xddf2);
    expect([...b.received(1).subarray(58)]).toEqual([0x22, 0x0d]);
    expect(b.receiveDescriptor(1).checksum).toBe(0xffff);
  });

  it('IEEE 802.3: is padded to 60 bytes when it is short', async () => {
    const { a, b, run } = await boundBench();
    a.putFrame(0, frameBetween(0, 1, 20));
    await a.write('tdt', 1);
    await run(10 * US);
    expect(b.receiveDescriptor(0).length).toBe(60);
    expect([...b.received(0).subarray(20)]).toEqual(new Array(40).fill(0));
  });

  it('takes the sum of its parts’ times from doorbell to interrupt', async () => {
    const { a, b, run } = await boundBench();
    await b.write('ims', NicCause.RXT0);
    a.putFrame(0, frameBetween(0, 1, 60));
    const startPs = a.hostLp.nowPs;
    a.post('tdt', 1);
    await run(20 * US);
    // Two reads of 434 ns (descriptor, data), the store's latency of 185 ns, 57.6 ns on the wire, 309.6 ns of cable, posted
    // writes of some 170 ns, and the NIC's own cycles of 4 ns: 2 × 8 for descriptors, 2 × 25 for the MACs, and a few.
    const parts = 2 * 434 + 185 + 57.6 + 309.6 + 170 + 66 * 4;
    const took = (b.interrupts[0]!.timePs - startPs) / 1000;
    expect(took).toBeGreaterThan(parts - 60);
    expect(took).toBeLessThan(parts + 160);
  });
});

describe('the rings', () => {
  it('carry many frames around and around in order, at the rate of the cable', async () => {
    const made = await upBench({}, 8, 7);
    const { a, b } = made;
    const run = made.run.bind(made);
    const sizes = [60, 1514, 333, 61, 1000, 128, 700];
    let sent = 0;
    let got = 0;
    const bytes: number[] = [];
    for (let round = 0; round < 400 && got < 100; round++) {
      while (sent < 100 && sent - (await txDone(a, sent)) < 7) {
        a.putFrame(sent % 8, frameBetween(0, 1, sizes[sent % 7]!, sent));
        sent++;
      }
      await a.write('tdt', sent % 8);
      await run(2 * US);
      while (b.receiveDescriptor(got % 8).done === 1) {
        expect([...b.received(got % 8)]).toEqual([...frameBetween(0, 1, sizes[got % 7]!, got)]);
        bytes.push(b.receiveDescriptor(got % 8).length);
        b.giveBuffer(got % 8);
        got++;
      }
      await b.write('rdt', (got + 7) % 8);
    }
    expect(got).toBe(100);
    expectBalances(made);
  });

  it('are read by as few fetches as PREFETCH allows', async () => {
    const { a, run } = await boundBench(16);
    for (let index = 0; index < 15; index++) a.putFrame(index, frameBetween(0, 1, 60));
    const before = a.nic.counters.descriptorFetches;
    await a.write('tdt', 15);
    await run(20 * US);
    expect(a.nic.counters.descriptorFetches - before).toBe(2);
    expect(await a.read('tdh')).toBe(15);
  });

  it('keep the cable busy with long frames', async () => {
    const made = await upBench({}, 64, 63);
    const { a, b } = made;
    for (let index = 0; index < 63; index++) a.putFrame(index, frameBetween(0, 1, 1514));
    const busyBefore = a.nic.port.busyPs;
    await a.write('tdt', 63);
    await made.run(200 * US);
    expect(a.nic.port.busyPs - busyBefore).toBe(63 * 1538 * 800);
    expect(b.nic.counters.delivered).toBe(63);
    const { account } = a.nic.blocks.transmitMac;
    account.close(a.nic.domain.cycle);
    expect(account.overlapCount).toBe(0);
    expect(account.stalledCycles[0]! * 4000).toBeGreaterThan(0.95 * 62 * 1538 * 800);
  });
});

describe('the bus-master engine', () => {
  it('counts its address up and its words down as they move, readable while it runs', async () => {
    const { a, run } = await boundBench(16, { ethernet: { mtuBytes: 9000 }, nic: { burstBytes: 64 } });
    const address = a.putFrame(0, frameBetween(0, 1, 9001));
    a.post('tdt', 1);
    const seen: number[][] = [];
    for (let step = 0; step < 300; step++) {
      await run(10_000);
      const { transmitBusMaster: engine } = a.nic.blocks;
      if (engine.isBusy) seen.push([engine.address - address, engine.wordsLeft, engine.place]);
    }
    expect(seen.length).toBeGreaterThan(10);
    for (const [moved, words, place] of seen) {
      expect(words).toBe(Math.ceil((9001 - moved!) / 4));
      expect(place).toBe(moved);
    }
    const counts = seen.map(([moved]) => moved!);
    expect(counts).toEqual([...counts].sort((left, right) => left - right));
    expect(new Set(counts).size).toBeGreaterThan(5);
    await run(20 * US);
    expect(await a.read('txdmaCount')).toBe(0);
    expect(await a.read('txdmaAddressLow')).toBe(address + 9001);
    expect(await a.read('txdmaStatus')).toBe(0);
  });

  it('can be read by software in the middle of a transfer', async () => {
    const { a, b, run } = await boundBench(16, { ethernet: { mtuBytes: 9000 }, dma: { tagCount: 1 } });
    a.putFrame(0, frameBetween(0, 1, 9000));
    a.post('tdt', 1);
    await run(US);
    const status = await a.read('txdmaStatus');
    const words = await a.read('txdmaCount');
    expect(fieldOf(status, nicBits.engineStatus.busy)).toBe(1);
    expect(words).toBeGreaterThan(0);
    expect(words).toBeLessThan(2250);
    expect(b.nic.counters.arrivals).toBe(0);
  });
});

describe('the receiving side', () => {
  it('8254x manual 13.7.5: lets frames wait for descriptors, then misses those that no longer fit, and reports it', async () => {
    const made = await upBench({ nic: { receiveBufferKib: 16 } }, 32, 0);
    const { a, b } = made;
    for (let index = 0; index < 31; index++) a.putFrame(index, frameBetween(0, 1, 1514, index));
    await a.write('tdt', 31);
    await made.run(100 * US);
    // 16 KiB hold ten frames of 1514 bytes, each rounded up to 1520.
    expect(b.nic.counters).toMatchObject({ accepted: 10, missed: 21, delivered: 0 });
    expect((await b.read('icr')) & NicCause.RXO).toBe(NicCause.RXO);
    expect([await b.read('mpc'), await b.read('mpc')]).toEqual([21, 0]);
    await b.write('rdt', 31);
    await made.run(100 * US);
    expect(b.nic.counters.delivered).toBe(10);
    expect([...b.received(9)]).toEqual([...frameBetween(0, 1, 1514, 9)]);
    expect(await b.read('rnbc')).toBe(1);
    expectBalances(made);
  });

  it('8254x manual 3.2.1: accepts its own address, broadcasts if enabled, and all if it is promiscuous', async () => {
    const made = await upBench();
    const { a, b } = made;
    const other = frameBetween(0, 5, 60);
    const broadcast = frameBetween(0, 1, 60);
    broadcast.fill(0xff, 0, 6);
    const group = frameBetween(0, 1, 60);
    group[0] = 0x03;
    let tail = 0;
    const accepted = async (rctl: number): Promise<number> => {
      await b.write('rctl', rctl);
      const before = b.nic.counters.accepted;
      for (const frame of [other, broadcast, group]) a.putFrame(tail++ % 16, frame);
      await a.write('tdt', tail % 16);
      await made.run(10 * US);
      return b.nic.counters.accepted - before;
    };
    expect(await accepted(0x2)).toBe(0);
    expect(await accepted(0x8002)).toBe(1);
    expect(await accepted(0x800a)).toBe(2);
    expect(await accepted(0x801a)).toBe(3);
    expect(await accepted(0)).toBe(0);
    expect([await b.read('bprc'), await b.read('rxfilt')]).toEqual([3, 6]);
    expectBalances(made);
  });

  it('8254x manual 13.7.15: drops frames longer than the configured limit', async () => {
    const made = await upBench({ ethernet: { mtuBytes: 9000 } });
    const { a, b } = made;
    await b.write('rctl', 0x8002);
    a.putFrame(0, frameBetween(0, 1, 1519));
    await a.write('tdt', 1);
    await made.run(20 * US);
    expect(await b.read('rlec')).toBe(1);
    await b.write('rctl', 0x8022);
    a.putFrame(1, frameBetween(0, 1, 9014));
    await a.write('tdt', 2);
    await made.run(30 * US);
    expect(b.nic.counters.deliveredBytes).toBe(9014);
    expectBalances(made);
  });

  it('8254x manual 3.2.7.3: sets RXDMT0 when the number of descriptors falls to RXMIN', async () => {
    const { a, b, run } = await boundBench(16);
    await b.write('rxmin', 13);
    for (let index = 0; index < 2; index++) a.putFrame(index, frameBetween(0, 1, 60));
    await a.write('tdt', 1);
    await run(10 * US);
    expect((await b.read('icr')) & NicCause.RXDMT0).toBe(0);
    await a.write('tdt', 2);
    await run(10 * US);
    expect((await b.read('icr')) & NicCause.RXDMT0).toBe(NicCause.RXDMT0);
  });

  it('8254x manual 13.7: clears each count when it is read, that of octets with its upper half', async () => {
    const made = await upBench();
    const { a, b } = made;
    a.putFrame(0, frameBetween(0, 1, 60));
    a.putFrame(1, frameBetween(0, 1, 100));
    await a.write('tdt', 2);
    await made.run(10 * US);
    expect([await b.read('gprc'), await b.read('gprc')]).toEqual([2, 0]);
    // Octets from the address to the check sequence of 4 bytes.
    const octets = 60 + 100 + 2 * 4;
    expect([await b.read('gorcl'), await b.read('gorcl')]).toEqual([octets, octets]);
    expect([await b.read('gorch'), await b.read('gorcl')]).toEqual([0, 0]);
    expect([await a.read('gptc'), await a.read('tpt'), await a.read('gptc')]).toEqual([2, 2, 0]);
  });

  it('IEEE 802.3: counts frames with a wrong check sequence and drops them', async () => {
    const made = await upBench();
    const { a, b } = made;
    const corrupted = { kind: 'corrupted', place: DamagePlace.ANYWHERE, isInside: false } as const;
    a.nic.port.faults.addRule(corrupted, { last: 1 }, { fired: () => {} });
    a.putFrame(0, frameBetween(0, 1, 60));
    a.putFrame(1, frameBetween(0, 1, 61));
    await a.write('tdt', 2);
    await made.run(10 * US);
    expect(await b.read('crcerrs')).toBe(1);
    expect(b.receiveDescriptor(0).length).toBe(61);
    expectBalances(made);
  });
});

function expectBalances({ a, b }: NicBench): void {
  for (const [from, to] of [
    [a, b],
    [b, a],
  ] as const) {
    const imbalance = ethernetImbalance(from.nic.port.transmitted, to.nic.port.received);
    expect(imbalance).toEqual({ frames: 0, bytes: 0 });
    const { counters: c } = to.nic;
    expect(c.arrivals).toBe(to.nic.port.received.deliveredFrames);
    expect(c.arrivals).toBe(c.accepted + c.filtered + c.wrongLength + c.missed + c.disabledDrops);
    expect(c.accepted).toBe(c.delivered + c.released + c.droppedByReset + to.nic.blocks.receiveBuffer.count);
    for (const account of to.nic.accounts)
      expect([account.name, account.overlapCount]).toEqual([account.name, 0]);
  }
}

/** Frames that the NIC has accepted, of those sent so far. */
async function txDone(machine: NicBench['a'], sent: number): Promise<number> {
  const head = await machine.read('tdh');
  return sent - ((sent - head) & 7);
}
