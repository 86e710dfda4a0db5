import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { defaultsOf } from '../base/parameter.ts';
import { ChannelReader, ChannelWriter, channelBufferBytes, joinEnds } from '../sim/channel.ts';
import { blocksOf } from './link-credits.ts';
import { Opcode } from './opcodes.ts';
import { PACKET_PAYLOAD_OFFSET } from './packet.ts';
import { wireParameters } from './parameters.ts';
import { ReferencedRecords } from './referenced-records.ts';
import { WireBench } from './wire-bench.ts';
import { takenBytesMax, wireChannelBytes } from './wire-sizing.ts';

/** References that a spec issues and releases by hand. */
class HandMadeReferences {
  referenceCount = 0;
  releasedCount = 0;
  callCount = 0;

  snapshot(): void {
    this.callCount++;
    this.releasedCount = this.referenceCount;
  }
}

/** A ring of 4 KiB whose reader may hold 2 KiB; each record has 128 bytes. */
function ring() {
  const buffer = new SharedArrayBuffer(channelBufferBytes(4096));
  const [writer, reader] = [new ChannelWriter(buffer), new ChannelReader(buffer)];
  joinEnds(writer, reader, new Float64Array(1), 0);
  const references = new HandMadeReferences();
  const referenced = new ReferencedRecords(reader, references, 2048);
  const take = (): number => {
    writer.append(0, 1, 64);
    return reader.take();
  };
  return { reader, references, referenced, take };
}

describe('released records', () => {
  it('are released at once if there is no reference', () => {
    const { reader, referenced, take } = ring();
    referenced.release(take());
    expect([referenced.heldCount, reader.takenBytes]).toEqual([0, 0]);
  });

  it('keep their room until all earlier references are released, in the order of issue', () => {
    const { reader, references, referenced, take } = ring();
    const offsets = [take(), take(), take(), take()];
    references.referenceCount = 2;
    referenced.release(offsets[0]!);
    references.referenceCount = 5;
    referenced.release(offsets[1]!);
    expect([referenced.heldCount, reader.takenBytes]).toEqual([2, 512]);
    references.releasedCount = 2;
    referenced.release(offsets[2]!);
    expect([referenced.heldCount, reader.takenBytes]).toEqual([2, 384]);
    references.releasedCount = 5;
    referenced.release(offsets[3]!);
    expect([referenced.heldCount, reader.takenBytes]).toEqual([0, 0]);
    expect(references.callCount).toBe(0);
  });

  it('release their room when the other end needs its share, taking a snapshot only if necessary', () => {
    const { reader, references, referenced, take } = ring();
    references.referenceCount = 1;
    for (let count = 0; count < 16; count++) referenced.release(take());
    referenced.makeRoom();
    expect([referenced.heldCount, reader.takenBytes, references.callCount]).toEqual([16, 2048, 0]);
    references.releasedCount = 1;
    references.referenceCount = 2;
    const unconsumed = take();
    referenced.makeRoom();
    expect([referenced.heldCount, reader.takenBytes, references.callCount]).toEqual([0, 128, 0]);
    referenced.release(unconsumed);
    for (let count = 0; count < 16; count++) referenced.release(take());
    referenced.makeRoom();
    expect([referenced.heldCount, reader.takenBytes, references.callCount]).toEqual([0, 0, 1]);
  });

  it('reclaim nothing because of packets that were not released', () => {
    const { references, referenced, take } = ring();
    references.referenceCount = 1;
    for (let count = 0; count < 20; count++) take();
    referenced.makeRoom();
    expect(references.callCount).toBe(0);
  });
});

describe('a wire port with zero-copy payload', () => {
  it('returns credits at once, and keeps the payload', async () => {
    const references = new HandMadeReferences();
    const bench = new WireBench({}, undefined, references);
    const upPs = await bench.bringUp();
    bench.a.at(upPs, () => bench.a.send(Opcode.RC_RDMA_WRITE_ONLY, 512, 9));
    bench.b.consumesAtOnce = false;
    await bench.runTo(upPs + 1_000_000);
    const [offset] = bench.b.held;
    references.referenceCount = 1;
    expect(bench.b.port.receiveBufferedBytes).toBeGreaterThan(0);
    bench.b.consumeAll();
    expect(bench.b.port.receiveBufferedBytes).toBe(0);
    const start = offset! + PACKET_PAYLOAD_OFFSET;
    const before = bench.b.port.rxBytes.slice(start, start + 512);
    bench.b.consumesAtOnce = true;
    for (let index = 0; index < 40; index++)
      bench.a.at(upPs + 2_000_000 + index * 300_000, () => bench.a.send(Opcode.RC_SEND_ONLY, 1024, index));
    await bench.runTo(upPs + 20_000_000);
    expect(bench.b.arrivals).toHaveLength(41);
    expect(bench.b.port.rxBytes.slice(start, start + 512)).toEqual(before);
    expect(references.callCount).toBe(0);
  });

  it('never lacks room for packets admitted by credits, even if references are released only by snapshots', async () => {
    for (const changes of [{}, { receiveBufferBytes: 8448 }, { speed: 'EDR', lanes: '12' }] as const) {
      // Twice the ring's capacity, and more: 2 KiB each on average.
      const ringBytes = wireChannelBytes({ ...defaultsOf(wireParameters), ...changes });
      const packetCount = 300 + Math.ceil((2 * ringBytes) / 2048);
      const seen: string[] = [];
      for (const isReferencing of [true, false]) {
        const references = new HandMadeReferences();
        const bench = new WireBench(changes, undefined, isReferencing ? references : undefined);
        const upPs = await bench.bringUp();
        const end = bench.a;
        let psn = 0;
        const sendAll = (): void => {
          const bytes = (psn * 331) % 4097;
          while (psn < packetCount && end.port.canTransmit(Opcode.RC_SEND_ONLY, bytes)) {
            end.send(Opcode.RC_SEND_ONLY, bytes, psn++);
            references.referenceCount++;
          }
        };
        end.onSpace = sendAll;
        end.at(upPs, sendAll);
        await bench.runTo(upPs + 10_000_000_000);
        expect(psn).toBe(packetCount);
        expect(references.callCount > 0).toBe(isReferencing);
        seen.push(JSON.stringify([bench.b.arrivals, bench.b.port.received, end.port.transmitted]));
      }
      expect(seen[0] === seen[1]).toBe(true);
    }
  }, 60_000);
});

describe('the ring of a wire', () => {
  it('has room for twice the credits, and for referenced records', () => {
    const config = fc.record({
      speed: fc.constantFrom('SDR' as const, 'QDR' as const, 'EDR' as const),
      lanes: fc.constantFrom('1' as const, '4' as const, '12' as const),
      cableMetres: fc.integer({ min: 0, max: 10_000 }),
      transmitAheadBytes: fc.integer({ min: 0, max: 65_536 }),
      receiveBufferBytes: fc.integer({ min: 8448, max: 131_072 }),
    });
    fc.assert(
      fc.property(config, (changes) => {
        const sized = { ...defaultsOf(wireParameters), ...changes };
        const capacityBytes = wireChannelBytes(sized) - channelBufferBytes(0);
        const heldBytes = 2 * blocksOf(sized.receiveBufferBytes) * 128;
        expect(takenBytesMax(sized, capacityBytes)).toBeGreaterThanOrEqual(heldBytes + 65_536);
      }),
    );
  });
});
