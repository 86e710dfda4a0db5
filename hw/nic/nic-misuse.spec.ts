/** Software that programs a ring illegally, addresses that are not memory, and the reset that repairs everything. */
import { describe, expect, it } from 'vitest';
import { NicCause, NicDmaError, nicBits } from '../../abi/nic/index.ts';
import { fieldOf } from '../../base/registers.ts';
import { boundBench, frameBetween, US, upBench } from './testing/nic-bench.ts';

describe('illegal programming of a ring', () => {
  it.each([
    ['a length of 0', 'tdlen', 0],
    ['a length that is no multiple of 128', 'tdlen', 100],
    ['a length beyond 1 MiB', 'tdlen', 2 << 20],
    ['an unaligned base', 'tdbal', 0x1_0008],
  ] as const)('ends in PROGERR: %s', async (_, name, value) => {
    const { a } = await boundBench();
    await a.write('txdctl', 0);
    await a.write(name, value);
    await a.write('txdctl', 1 << 25);
    expect((await a.read('icr')) & NicCause.PROGERR).toBe(NicCause.PROGERR);
    expect(fieldOf(await a.read('txdctl'), nicBits.queueControl.fault)).toBe(1);
    expect(fieldOf(await a.read('txdctl'), nicBits.queueControl.enable)).toBe(0);
  });

  it('stops the queue at a tail beyond it, and a restart repairs it', async () => {
    const { a, b, run } = await boundBench();
    await a.write('tdt', 16);
    expect(await a.read('icr')).toBe(NicCause.PROGERR);
    a.putFrame(0, frameBetween(0, 1, 100));
    await a.write('tdt', 1);
    await run(10 * US);
    expect(b.nic.counters.arrivals).toBe(0);
    await a.write('txdctl', 0);
    await a.write('txdctl', 1 << 25);
    await run(10 * US);
    expect(b.receiveDescriptor(0)).toMatchObject({ done: 1, length: 100 });
  });

  it('rejects changes of an enabled ring', async () => {
    const { a } = await boundBench();
    await a.write('tdlen', 256 * 4);
    expect(await a.read('icr')).toBe(NicCause.PROGERR);
    expect(await a.read('tdlen')).toBe(256);
  });

  it.each([
    ['longer than the cable takes', [1515], {}],
    ['longer than the cable takes in two pieces', [1000, 600], {}],
    ['with nothing in it', [0], {}],
    ['without a whole header', [13], {}],
  ])('abandons a frame %s', async (_, lengths) => {
    const { a, b, run } = await boundBench();
    for (const [index, length] of lengths.entries()) {
      const isLast = index === lengths.length - 1;
      a.putFrame(index, frameBetween(0, 1, 2000).subarray(0, length), { endOfPacket: isLast ? 1 : 0 });
    }
    await a.write('tdt', lengths.length);
    await run(10 * US);
    expect((await a.read('icr')) & NicCause.PROGERR).toBe(NicCause.PROGERR);
    expect(a.transmitDescriptor(lengths.length - 1)).toMatchObject({ done: 1, error: 1 });
    expect(b.nic.counters.arrivals).toBe(0);
    expect(a.nic.blocks.transmitBuffer.isEmpty).toBe(true);
  });
});

describe('addresses that are not memory', () => {
  it('PCIe 2.3.1: end a transmit transfer with Unsupported Request, an error in the descriptor and DMAERR', async () => {
    const { a, b, run } = await boundBench();
    a.putFrame(0, frameBetween(0, 1, 600), { bufferAddress: 0x8000_0000n });
    a.putFrame(1, frameBetween(0, 1, 600));
    await a.write('tdt', 2);
    await run(10 * US);
    expect((await a.read('icr')) & NicCause.DMAERR).toBe(NicCause.DMAERR);
    expect(a.transmitDescriptor(0)).toMatchObject({ done: 1, error: 1 });
    expect(fieldOf(await a.read('txdmaStatus'), nicBits.engineStatus.error)).toBe(
      NicDmaError.UNSUPPORTED_REQUEST,
    );
    expect(fieldOf(await a.read('txdctl'), nicBits.queueControl.fault)).toBe(1);
    expect(b.nic.counters.arrivals).toBe(0);
    expect(a.rootComplex.log.entries.length).toBeGreaterThan(0);
  });

  it('stop the queue if the ring itself is there', async () => {
    const { a, run } = await boundBench();
    await a.write('txdctl', 0);
    await a.write('tdbah', 1);
    await a.write('txdctl', 1 << 25);
    await a.write('tdt', 1);
    await run(10 * US);
    expect(await a.read('icr')).toBe(NicCause.DMAERR);
    expect(fieldOf(await a.read('txdctl'), nicBits.queueControl.fault)).toBe(1);
  });

  it('of receive buffers are reported by the root complex, as writes are posted', async () => {
    const { a, b, run } = await upBench({}, 16, 0).then((made) => ({ ...made, run: made.run.bind(made) }));
    b.giveBuffer(0, 0x8000_0000);
    await b.write('rdt', 1);
    a.putFrame(0, frameBetween(0, 1, 600));
    await a.write('tdt', 1);
    await run(10 * US);
    expect(b.receiveDescriptor(0).done).toBe(1);
    expect(b.rootComplex.log.entries.map(({ fault }) => fault)).toContain('writeOutsideMemory');
  });

  it('PCIe 7.5.1: are not even tried while bus mastering is off', async () => {
    const { a, b, run } = await boundBench();
    await b.configWrite(4, 2);
    a.putFrame(0, frameBetween(0, 1, 600));
    await a.write('tdt', 1);
    await run(10 * US);
    expect((await b.read('icr')) & NicCause.DMAERR).toBe(NicCause.DMAERR);
    expect(b.receiveDescriptor(0).done).toBe(0);
  });
});

describe('a reset', () => {
  it('8254x manual 13.4.1: clears everything except configuration space, in its time', async () => {
    const { a, b, run } = await boundBench();
    for (let index = 0; index < 8; index++) a.putFrame(index, frameBetween(0, 1, 1514));
    a.post('tdt', 8);
    await run(2 * US);
    a.post('ctrl', 1 << 26);
    await run(500_000);
    a.post('tdlen', 128);
    expect(fieldOf(await a.read('ctrl'), nicBits.ctrl.reset)).toBe(1);
    await run(2 * US);
    expect(await a.read('ctrl')).toBe(0);
    expect([await a.read('tdlen'), await a.read('tdt'), await a.read('ims')]).toEqual([0, 0, 0]);
    expect(await a.read('status')).toBe(1);
    expect(await b.read('status')).toBe(1);
    await a.start();
    await run(40 * US);
    expect(await a.read('status')).toBe(3);
    const before = b.nic.counters.delivered;
    a.putFrame(0, frameBetween(0, 1, 99));
    await a.write('tdt', 1);
    await run(20 * US);
    expect(b.nic.counters.delivered).toBe(before + 1);
  });

  it('lets reads of another size or offset pass without harm', async () => {
    const { a } = await boundBench();
    expect(await a.loadAt(0, 0x2801, 1)).toBe(0);
    expect(await a.loadAt(0, 0x9000)).toBe(0);
    await a.storeAt(0, 0x9000, 5);
    expect(a.nic.counters.registerAccessErrors).toBe(3);
  });
});

/** All frames are accounted for, in the statistics of the cable and of the NIC. */
