/** Falsified packets of a successful scene: each rule finds its violation. */
import { beforeAll, describe, expect, it } from 'vitest';
import type { LinkPacket } from '../../machine/node/packet-log.ts';
import { type Played, playStory } from '../run-story.ts';
import { sceneOf } from '../scenes/index.ts';
import { drawScene } from '../story-of-seed.ts';
import { judgePackets } from './packets.ts';
import { judgeStalls } from './stalls.ts';

let played: Played;

beforeAll(async () => {
  const { set, ...story } = drawScene(3, sceneOf({ name: 'few-credits' }));
  // Reads that take several completions.
  const wide = { ...set, 'pcie.enumeration.maxReadRequestBytes': 1024 };
  played = await playStory(
    { ...story, set: wide, again: undefined },
    { partition: 'single', shuffleSeed: undefined },
  );
}, 60_000);

/** The story with the first packet of node 0 that `which` names altered. */
function telling(
  direction: 'toHost' | 'toDevice',
  which: (packet: LinkPacket) => boolean,
  otherwise: (packet: LinkPacket) => Partial<LinkPacket>,
): string {
  const packets = played.packets.map((log) => {
    if (log.node !== 0 || log.direction !== direction) return log;
    const at = log.packets.findIndex(which);
    expect(at).toBeGreaterThanOrEqual(0);
    const told = log.packets.map((packet, index) =>
      index === at ? { ...packet, ...otherwise(packet) } : packet,
    );
    return { ...log, packets: told };
  });
  return judgePackets({ ...played, packets }).join('\n');
}

const isRead = ({ kind }: LinkPacket): boolean => kind === 'MRd';
const isData = ({ kind, byteCount, lengthBytes }: LinkPacket): boolean =>
  kind === 'CplD' && byteCount > lengthBytes;

describe('the judge of packets', () => {
  it('finds nothing where all went well', () => {
    expect(judgePackets(played)).toEqual([]);
    expect(judgeStalls(played)).toEqual([]);
  });

  it('finds a read across 4 KiB', () => {
    const told = telling('toHost', isRead, () => ({ address: 8192 - 4, lengthBytes: 64 }));
    expect(told).toMatch(/crosses 4 KiB/);
  });

  it('finds more than MPS, and more than MRRS', () => {
    const isWrite = ({ kind }: LinkPacket): boolean => kind === 'MWr';
    expect(telling('toHost', isWrite, () => ({ address: 0, lengthBytes: 4096 }))).toMatch(/more than MPS/);
    expect(telling('toHost', isRead, () => ({ address: 1, lengthBytes: 4095 }))).toMatch(/more than MRRS/);
  });

  it('finds a completion that does not go on where the one before ended, and one without a request', () => {
    const short = telling('toDevice', isData, ({ lengthBytes }) => ({ lengthBytes: lengthBytes - 1 }));
    expect(short).toMatch(/RCB/);
    expect(short).toMatch(/are to come/);
    expect(telling('toDevice', isData, () => ({ tag: 255 }))).toMatch(/answers no request/);
  });

  it('finds an answer before its time, and packets closer than their bytes', () => {
    const isAnswer = ({ kind }: LinkPacket): boolean => kind === 'CplD';
    expect(telling('toHost', isAnswer, ({ atPs }) => ({ atPs: atPs - 60_000 }))).toMatch(
      /before the device can answer/,
    );
    const { readLatencyPs } = played.config.pcie.rootComplex;
    expect(telling('toDevice', isAnswer, ({ atPs }) => ({ atPs: atPs - readLatencyPs }))).toMatch(
      /before the root complex can answer/,
    );
    const { packets } = played.packets.find(({ node, direction }) => node === 0 && direction === 'toDevice')!;
    const tlps = packets.filter(({ kind }) => kind !== 'UpdateFC');
    const [first, second] = [tlps[0]!, tlps[1]!];
    expect(
      telling(
        'toDevice',
        (packet) => packet === second,
        () => ({ atPs: first.atPs + 1 }),
      ),
    ).toMatch(/ps after the packet/);
  });

  it('finds credits that were never there', () => {
    const { rootPort } = played.config.pcie;
    const config = {
      ...played.config,
      pcie: { ...played.config.pcie, rootPort: { ...rootPort, postedHeaders: rootPort.postedHeaders - 1 } },
    };
    expect(judgePackets({ ...played, config }).join()).toMatch(/posted header credits/);
  });
});
