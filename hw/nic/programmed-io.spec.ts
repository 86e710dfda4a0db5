import { describe, expect, it } from 'vitest';
import { NicBar, NicCause, nicBits } from '../../abi/nic/index.ts';
import { viewOf } from '../../base/bytes.ts';
import { fieldOf, withField } from '../../base/registers.ts';
import { frameBetween, NicBench, type NicMachine, US } from './testing/nic-bench.ts';

const { length: LENGTH, offset: OFFSET, go: GO } = nicBits.piotx;
const { length: SHOWN_LENGTH, offset: SHOWN_OFFSET, valid: VALID } = nicBits.piorx;

/** Both NICs in packet-buffer mode in both directions, the link up. */
async function bench() {
  const made = new NicBench();
  for (const machine of [made.a, made.b]) {
    await machine.enumerate();
    await machine.enableMsix();
    await machine.write('pbmode', 3);
    await machine.write('ivar', 0x000a_0908);
    await machine.write('tctl', 0xa);
    await machine.write('rctl', 0x8002);
    await machine.write('ctrl', 1 << 6);
  }
  await made.run(20 * US);
  for (const machine of [made.a, made.b]) await machine.read('icr');
  return { a: made.a, b: made.b, run: made.run.bind(made) };
}

/** Word by word, as a CPU does it. */
async function putWords(machine: NicMachine, place: number, bytes: Uint8Array): Promise<void> {
  const padded = new Uint8Array(Math.ceil(bytes.length / 4) * 4);
  padded.set(bytes);
  for (let at = 0; at < padded.length; at += 4) {
    await machine.storeAt(NicBar.PACKET_BUFFER, place + at, viewOf(padded).getUint32(at, true));
  }
}

const command = (place: number, bytes: number): number =>
  withField(withField(withField(0, LENGTH, bytes), OFFSET, place / 4), GO, 1);

async function takeFrame(machine: NicMachine): Promise<number[] | undefined> {
  const shown = await machine.read('piorx');
  if (fieldOf(shown, VALID) === 0) return undefined;
  const bytes: number[] = [];
  const place = fieldOf(shown, SHOWN_OFFSET) * 4;
  for (let at = 0; at < fieldOf(shown, SHOWN_LENGTH); at += 4) {
    const word = await machine.loadAt(NicBar.PACKET_BUFFER, place + at);
    bytes.push(word & 0xff, (word >>> 8) & 0xff, (word >>> 16) & 0xff, word >>> 24);
  }
  await machine.write('piorx', 0);
  return bytes.slice(0, fieldOf(shown, SHOWN_LENGTH));
}

describe('programmed I/O through the packet buffer', () => {
  it('sends and receives frames word by word', async () => {
    const { a, b, run } = await bench();
    await b.write('ims', NicCause.PIORX);
    const frame = frameBetween(0, 1, 77, 5);
    await putWords(a, 0x400, frame);
    await a.write('piotx', command(0x400, 77));
    await run(5 * US);
    expect(await a.read('piotxCount')).toBe(1);
    expect(b.interrupts.map(({ vector }) => vector)).toEqual([0]);
    expect(await takeFrame(b)).toEqual([...frame]);
    expect(await takeFrame(b)).toBeUndefined();
    expect(b.nic.blocks.receiveBuffer.isEmpty).toBe(true);
    // No DMA took part: only loads, stores and the message crossed the link.
    expect(
      [a.nic.dmaRead, b.nic.dmaRead].map((engine) =>
        engine.requesters.map(({ counters }) => counters.requests),
      ),
    ).toEqual([
      [0, 0, 0],
      [0, 0, 0],
    ]);
  });

  it('shows frames one after another, with a cause for each', async () => {
    const { a, b, run } = await bench();
    for (const [index, bytes] of [60, 100, 61].entries()) {
      const frame = frameBetween(0, 1, bytes, index);
      await putWords(a, index * 0x800, frame);
      await a.write('piotx', command(index * 0x800, bytes));
    }
    await run(10 * US);
    for (const [index, bytes] of [60, 100, 61].entries()) {
      expect(await b.read('icr')).toBe(NicCause.PIORX);
      expect(await takeFrame(b)).toEqual([...frameBetween(0, 1, bytes, index)]);
    }
    expect(await b.read('icr')).toBe(0);
    expect(b.nic.counters).toMatchObject({ released: 3, releasedBytes: 221, delivered: 0 });
    expect(await b.read('gprc')).toBe(3);
    expect(await b.read('gorcl')).toBe(221 + 3 * 4);
  });

  it('reports when no further frame is accepted, and rejects it', async () => {
    const { a, run } = await bench();
    a.nic.port.faults.addRule({ kind: 'late', delayPs: 50 * US }, { last: 1 }, { fired: () => {} });
    for (let index = 0; index < 5; index++) await a.write('piotx', command(0, 60));
    expect(fieldOf(await a.read('piotx'), GO)).toBe(1);
    expect(await a.read('icr')).toBe(NicCause.PROGERR);
    await run(60 * US);
    expect(fieldOf(await a.read('piotx'), GO)).toBe(0);
    expect(await a.read('piotxCount')).toBe(4);
  });

  it.each([
    ['beyond the transmit half', 0xfffc, 60],
    ['longer than the cable takes', 0, 1515],
    ['without a header', 0, 13],
  ])('rejects a frame %s', async (_, place, bytes) => {
    const { a } = await bench();
    await a.write('piotx', command(place, bytes));
    expect(await a.read('icr')).toBe(NicCause.PROGERR);
    expect(a.nic.counters.transmitFrames).toBe(0);
  });

  it('changes its mode only while no frame is in progress', async () => {
    const { a } = await bench();
    await a.write('pbmode', 0);
    expect(await a.read('pbmode')).toBe(3);
    expect(await a.read('icr')).toBe(NicCause.PROGERR);
    await a.write('tctl', 0);
    await a.write('rctl', 0);
    await a.write('pbmode', 0);
    expect(await a.read('pbmode')).toBe(0);
  });
});
