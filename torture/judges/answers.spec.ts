/** Falsified responses on a cable: each rule finds its violation. Those of stock Linux violate none. */
import { readdirSync, readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { LinkType, readCapture } from '../../analyser/capture/index.ts';
import { type Played, playStory } from '../run-story.ts';
import { sceneOf } from '../scenes/index.ts';
import { drawScene } from '../story-of-seed.ts';
import { AnsweringEnd } from './answers/answering-end.ts';
import { isAnswer, operations, type TransportPacket, transportPacketIn } from './answers/transport-packet.ts';
import { judgeAnswers } from './answers.ts';
import { packetIn } from './ethernet/frame.ts';
import { type Frame, withFrames } from './testing/altered-capture.ts';

const { acknowledge, atomicAcknowledge, readFirst } = operations;
/**
 * Offsets in a record of the extensible record format: the BTH follows the record's header and the LRH, and the AETH
 * follows the BTH.
 */
const base = 16 + 8;
const aeth = base + 12;

let played: Played;
let mixed: Played;
let written: Played;
const playOf = (name: string, seed: number): Promise<Played> => {
  const { again: _, stopsAfter: _part, ...story } = drawScene(seed, sceneOf({ name }));
  return playStory({ ...story, again: undefined }, { partition: 'single', shuffleSeed: undefined });
};
beforeAll(async () => {
  played = await playOf('two-ways', 7);
  mixed = await playOf('masked-atomics', 3);
  written = await playOf('two-ways', 1);
}, 120_000);

const packetOf = ({ bytes }: Frame): TransportPacket | undefined => transportPacketIn(bytes, false);
const isAnswerOf =
  (of: (packet: TransportPacket) => boolean) =>
  (frame: Frame): boolean => {
    const packet = packetOf(frame);
    return frame.direction === 'outbound' && packet !== undefined && isAnswer(packet.operation) && of(packet);
  };
const isAck = isAnswerOf(({ operation, syndrome }) => operation === acknowledge && syndrome >> 5 === 0);

/** Findings when the capture is another. */
const foundIn = (whole: Played, change: (frames: Frame[]) => Frame[]): string =>
  judgeAnswers(withFrames(whole, change)).join('\n');

/** Adds to a number of `size` bytes at an offset. */
function plus(bytes: Uint8Array, at: number, size: number, amount: number): Uint8Array {
  const copy = bytes.slice();
  const view = new DataView(copy.buffer);
  let sum = amount;
  for (let byte = size - 1; byte >= 0; byte--, sum = Math.floor(sum / 256)) {
    sum += view.getUint8(at + byte);
    view.setUint8(at + byte, sum & 0xff);
  }
  return copy;
}

const bent =
  (which: (frame: Frame) => boolean, change: (frame: Frame) => Partial<Frame>, skipped = 0) =>
  (frames: Frame[]): Frame[] => {
    const places = frames.flatMap((frame, at) => (which(frame) ? [at] : []));
    const at = places[skipped]!;
    return frames.with(at, { ...frames[at]!, ...change(frames[at]!) });
  };

describe('the judge of answers', () => {
  it('finds nothing where all went well', () => {
    expect(judgeAnswers(played)).toEqual([]);
    expect(judgeAnswers(mixed)).toEqual([]);
    expect(judgeAnswers(written)).toEqual([]);
    const counts = [played, mixed].map(({ capture }) => {
      const answers = readCapture(capture!).frames.filter(isAnswerOf(() => true));
      return new Set(answers.map((frame) => packetOf(frame)!.operation));
    });
    expect(counts[0]!.has(readFirst)).toBe(true);
    expect(counts[1]!.has(atomicAcknowledge)).toBe(true);
  });

  it('finds an ACK of what has not come', () => {
    const told = foundIn(
      played,
      bent(isAck, ({ bytes }) => ({ bytes: plus(bytes, base + 9, 3, 1000) })),
    );
    expect(told).toMatch(/acknowledges PSN \d+, of the requests only those before \d+ have come/);
  });

  it('finds an ACK that goes back', () => {
    const told = foundIn(written, (frames) => {
      const acks = frames.filter((frame) => isAck(frame) && frame.interface === 1);
      const { destinationQpn } = packetOf(acks[0]!)!;
      const [first, second] = acks.filter((frame) => packetOf(frame)!.destinationQpn === destinationQpn);
      return frames.map((frame) => (frame === second ? { ...frame, bytes: first!.bytes } : frame));
    });
    expect(told).toMatch(/acknowledges PSN (\d+) behind \1, though no request from before was repeated/);
  });

  it('finds an MSN that counts too many or too few, and one that falls', () => {
    const over = foundIn(
      mixed,
      bent(
        isAnswerOf(({ operation }) => operation === atomicAcknowledge),
        ({ bytes }) => ({
          bytes: plus(bytes, aeth + 1, 3, 1),
        }),
      ),
    );
    expect(over).toMatch(/says MSN \d+ with PSN \d+, at most \d+ messages can be complete/);
    const under = foundIn(
      mixed,
      bent(
        isAnswerOf(({ operation }) => operation === atomicAcknowledge),
        ({ bytes }) => ({
          bytes: plus(bytes, aeth + 1, 3, -1),
        }),
      ),
    );
    expect(under).toMatch(/says MSN \d+ with PSN \d+, which ends \d+ messages at least/);
  });

  it('finds an ACK that passes the answer of a READ, and a READ that is answered with another', () => {
    const isFirst = isAnswerOf(({ operation }) => operation === readFirst);
    const passed = foundIn(played, (frames) => frames.filter((frame) => !isFirst(frame)));
    expect(passed).toMatch(/acknowledges PSN \d+, though the READ of \d+ waits for its answer of \d+/);
    const other = foundIn(
      played,
      bent(isFirst, ({ bytes }) => ({ bytes: bytes.with(base, atomicAcknowledge) })),
    );
    expect(other).toMatch(/answers PSN \d+ without a request for it/);
  });

  it('says nothing of a capture that is cut, and of what the driver has not connected', () => {
    expect(judgeAnswers({ ...played, capture: undefined })).toEqual([]);
    const told = judgeAnswers({ ...played, connections: [] });
    expect(told).toEqual([]);
  });
});

describe('the answers of stock Linux', () => {
  const wire = new URL('../../reference/wire/', import.meta.url);
  // If requests overtake each other after the capture point, they arrive in another order than the capture shows.
  const names = readdirSync(wire).filter((name) => /^(?!reorder-).*\.pcap(ng)?$/.test(name));

  it.each(names)('IBTA 9.7.5.1, 9.7.7.1: break no rule in %s', (name) => {
    const { interfaces, frames } = readCapture(readFileSync(new URL(name, wire)));
    const seen = frames.flatMap(({ interface: at, bytes, originalBytes }) => {
      if (interfaces[at]!.linkType !== LinkType.ETHERNET || originalBytes !== bytes.length) return [];
      const packet = transportPacketIn(bytes, true);
      return packet === undefined ? [] : [{ packet, payloadBytes: packetIn(bytes)!.payloadBytes }];
    });
    const isOfRead = ({ operation }: TransportPacket): boolean =>
      operation >= readFirst && operation < acknowledge;
    const mtuBytes = Math.max(
      1,
      ...seen.map(({ packet, payloadBytes }) => (isOfRead(packet) ? payloadBytes : 1)),
    );
    const packets = seen.map(({ packet }) => packet);
    const flowsOf = (isOfAnswers: boolean): TransportPacket[][] =>
      Object.values(
        Object.groupBy(
          packets.filter(({ operation }) => isAnswer(operation) === isOfAnswers),
          ({ destination, destinationQpn }) => `${destination} ${destinationQpn}`,
        ),
      ).map((flow) => flow!);
    const found = flowsOf(false).flatMap((requests) => {
      const psns = requests.map(({ psn }) => psn);
      const [answers, ...others] = flowsOf(true).filter((flow) => flow.some(({ psn }) => psns.includes(psn)));
      if (answers === undefined || others.length > 0) return [];
      const end = new AnsweringEnd(Math.min(...psns), mtuBytes, {
        isDisordered: false,
        hasGaps: false,
        keepsLater: false,
      });
      return packets.flatMap((packet) => {
        if (requests.includes(packet)) end.requested(packet);
        return answers.includes(packet) ? end.answered(packet) : [];
      });
    });
    // In this capture the cable duplicated an ACK.
    expect(found).toEqual(
      name.startsWith('dup-ack') ? [expect.stringMatching(/acknowledges PSN 258 behind 258/)] : [],
    );
  });
});

describe('the answers of a responder with selective repeat', () => {
  const writeOnly = 10;
  const packet = (operation: number, psn: number, syndrome = -1, msn = 0): TransportPacket => ({
    destination: '1',
    operation,
    destinationQpn: 5,
    psn,
    syndrome,
    msn,
    wantedBytes: 0,
  });
  const gapNak = (psn: number, named: number): TransportPacket => packet(acknowledge, psn, 3 << 5, named);
  /** WRITEs 0, 2 and 3 have come; 1 is lost. */
  const afterGap = (keepsLater: boolean): AnsweringEnd => {
    const end = new AnsweringEnd(0, 1024, { isDisordered: false, hasGaps: false, keepsLater });
    for (const psn of [0, 2, 3]) end.requested(packet(writeOnly, psn));
    return end;
  };

  it('IRN 3.1: may acknowledge what was kept once the gap is filled, and not before', () => {
    const early = afterGap(true);
    expect(early.answered(packet(acknowledge, 3, 0, 4)).join()).toMatch(/acknowledges PSN 3/);
    const end = afterGap(true);
    expect(end.answered(gapNak(1, 2))).toEqual([]);
    end.requested(packet(writeOnly, 1));
    expect(end.answered(packet(acknowledge, 3, 0, 4))).toEqual([]);
  });

  it('IRN 3.1: name a request that has come after the gap', () => {
    expect(afterGap(true).answered(gapNak(1, 4)).join()).toMatch(/names 4, which has not come/);
    expect(afterGap(true).answered(gapNak(1, 0)).join()).toMatch(/names 0, which has not come/);
  });

  it('do not acknowledge later requests with go-back-N', () => {
    const end = afterGap(false);
    end.requested(packet(writeOnly, 1));
    expect(end.answered(packet(acknowledge, 3, 0, 4)).join()).toMatch(/acknowledges PSN 3/);
  });
});
