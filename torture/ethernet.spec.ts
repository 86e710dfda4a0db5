/** Stories of hosts on Ethernet: their drawing, the demands on their frames, and the detection of a falsified cable. */
import { readdirSync, readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { LinkType, readCapture } from '../analyser/capture/index.ts';
import { configurationOf } from '../machine/profile/index.ts';
import { hasHeadroom, isOnEthernet, mayDropFrames, roceHeaderBytesMax } from './ethernet-cable.ts';
import { packetIn } from './judges/ethernet/frame.ts';
import { judgeFrames } from './judges/frames.ts';
import { type Frame, withFrames } from './judges/testing/altered-capture.ts';
import { type Played, playStory } from './run-story.ts';
import { mtuBytes, type Story } from './story.ts';
import { storyOfSeed } from './story-of-seed.ts';

const wire = new URL('../reference/wire/', import.meta.url);
const drawn: readonly Story[] = Array.from({ length: 1500 }, (_, at) => storyOfSeed(at));
const onEthernet = drawn.filter(isOnEthernet);
const ofPlayers = onEthernet.filter(({ scene }) => scene === undefined);

describe('stories on Ethernet', () => {
  it('are some fifteen to twenty of a hundred fresh ones, of players and of scenes', () => {
    expect(onEthernet.length / drawn.length).toBeGreaterThan(0.14);
    expect(onEthernet.length / drawn.length).toBeLessThan(0.22);
    expect(ofPlayers.length).toBeGreaterThan(50);
    expect(new Set(onEthernet.map(({ scene }) => scene?.name)).size).toBeGreaterThan(30);
  });

  it('have both versions of RoCE, all transports, climates, path MTUs and places of GIDs among them', () => {
    expect(new Set(ofPlayers.map(({ set }) => set['hca.capability.roce']))).toEqual(new Set(['v1', 'v2']));
    expect(new Set(ofPlayers.map(({ climate }) => climate)).size).toBe(4);
    const qps = ofPlayers.flatMap(({ programs }) => programs.flatMap((plan) => plan.qps));
    expect(new Set(qps.map(({ transport }) => transport))).toEqual(new Set(['RC', 'UC', 'UD']));
    expect(new Set(qps.map(({ mtu }) => mtu))).toEqual(new Set([1, 2, 3, 4, 5]));
    const places = ofPlayers.flatMap(({ links }) => links.map(({ gidIndex }) => gidIndex));
    expect(new Set(places)).toEqual(new Set([0, 1, 2, 3]));
  });

  it('are accepted by the configuration, in frames that hold all of their packets', () => {
    for (const { set, programs } of ofPlayers) {
      const { ethernet } = configurationOf({ set });
      for (const { qps } of programs)
        for (const { transport, mtu } of qps)
          expect(transport === 'UD' ? 2048 : mtuBytes(mtu)).toBeLessThanOrEqual(
            ethernet.mtuBytes - roceHeaderBytesMax,
          );
    }
  });

  it('may lose frames only where that is no contradiction: not in calm nor in flawed ones', () => {
    const isLossless = ofPlayers.filter(({ climate }) => climate === 'calm' || climate === 'flawed');
    expect(isLossless.filter(mayDropFrames)).toEqual([]);
    for (const { set } of isLossless) expect(hasHeadroom(configurationOf({ set }))).toBe(true);
    expect(ofPlayers.filter(({ set }) => set['driver.usesPause'] === false).length).toBeGreaterThan(5);
  });
});

describe('the reader of frames', () => {
  const files = readdirSync(wire).filter((name) => /\.pcap(ng)?$/.test(name));

  it.each(files)('IBTA A17.3.4: finds every packet of RoCE right in %s, a capture of stock Linux', (name) => {
    const { interfaces, frames } = readCapture(readFileSync(new URL(name, wire)));
    for (const { interface: at, bytes, originalBytes } of frames) {
      if (interfaces[at]!.linkType !== LinkType.ETHERNET || originalBytes !== bytes.length) continue;
      const packet = packetIn(bytes);
      if (packet === undefined) continue;
      expect([packet.wrong, packet.isIcrcRight, packet.endBytes]).toEqual([[], true, bytes.length]);
    }
  });
});

describe('the judge of frames', () => {
  let played: Played;
  beforeAll(async () => {
    played = await playStory(storyOfSeed(1e14 + 3, 'paused-frames'), {
      partition: 'single',
      shuffleSeed: undefined,
    });
  }, 120_000);

  const isPause = ({ bytes }: Frame): boolean => bytes[0] === 1 && bytes[12] === 0x88 && bytes[13] === 0x08;

  /** Findings when the capture is another. */
  const foundIn = (change: (frames: Frame[]) => Frame[]): string =>
    judgeFrames(withFrames(played, change)).join('\n');

  const bent =
    (which: (frame: Frame) => boolean, change: (frame: Frame) => Partial<Frame>) => (frames: Frame[]) => {
      const at = frames.findIndex(which);
      return frames.with(at, { ...frames[at]!, ...change(frames[at]!) });
    };
  const sent = (frame: Frame): boolean =>
    frame.interface === 0 && frame.direction === 'outbound' && packetIn(frame.bytes) !== undefined;
  const came = (frame: Frame): boolean =>
    frame.interface === 1 && frame.direction === 'inbound' && packetIn(frame.bytes) !== undefined;
  const withByte =
    (at: number, value: number) =>
    ({ bytes }: Frame) => ({ bytes: bytes.with(at, value) });

  it('finds nothing in the cable as it was', () => {
    expect(foundIn((frames) => frames)).toBe('');
    expect(readCapture(played.capture!).frames.filter(isPause).length).toBeGreaterThan(10);
  });

  it.each([
    [
      'a frame that arrives later than the cable takes',
      bent(came, ({ timePs }) => ({ timePs: timePs + 1n })),
      /due at/,
    ],
    ['a frame that arrives with another byte', bent(came, withByte(60, 1)), /other bytes/],
    [
      'a frame that never arrives',
      (frames: Frame[]) => frames.toSpliced(frames.findIndex(came), 1),
      /due at|arrived|capture/,
    ],
    [
      'frames of which none arrives',
      (frames: Frame[]) =>
        frames.filter(({ interface: at, direction }) => at !== 1 || direction !== 'inbound'),
      /cable 0 to 1: a frame that left at \d+ ps never arrived/,
    ],
    [
      'an end that lets the other go on which it has not stopped',
      (frames: Frame[]) =>
        frames.toSpliced(
          frames.findIndex((frame) => isPause(frame) && frame.direction === 'outbound'),
          1,
        ),
      /had not stopped/,
    ],
    ['two frames at once', bent(sent, ({ timePs }) => ({ timePs: timePs + 5000n })), /is free from|due at/],
    ['a hop limit of none', bent(sent, withByte(21, 0)), /hop limit is 0/],
    [
      'a wrong ICRC',
      bent(sent, ({ bytes }) => withByte(bytes.length - 1, bytes.at(-1)! ^ 1)({ bytes } as Frame)),
      /ICRC/,
    ],
    [
      'a PAUSE frame of other quanta',
      bent((frame) => isPause(frame) && frame.direction === 'outbound', withByte(16, 0x12)),
      /no PAUSE frame/,
    ],
    [
      'an end that never lets the other go on',
      (frames: Frame[]) => {
        const last = frames.findLastIndex(
          (frame) => isPause(frame) && frame.interface === 1 && frame.direction === 'outbound',
        );
        return frames.toSpliced(last, 1);
      },
      /never let it go on|flow control|arrived/,
    ],
  ] as const)('finds %s', (_what, change, words) => {
    expect(foundIn(change)).toMatch(words);
  });

  it('finds a drop that nothing explains', () => {
    const [first, second] = played.report.nodes;
    const received = { ...second!.hca.ethernet!.received, fifoDrops: 1 };
    const hca = { ...second!.hca, ethernet: { ...second!.hca.ethernet!, received } };
    const report = { ...played.report, nodes: [first!, { ...second!, hca }] };
    expect(judgeFrames({ ...played, report }).join('\n')).toMatch(/1 fifoDrops, though there was room/);
  });
});
