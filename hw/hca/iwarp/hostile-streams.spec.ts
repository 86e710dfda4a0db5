/**
 * A hostile peer of a card with iWARP: whole Ethernet frames around segments of TCP, requests of MPA and FPDUs that no
 * honest peer sends. testing/hostile-connection.ts has the judges. `npm run fuzz` plays a million of each.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeMpaFrame, parseMpaFrame } from '../../../protocol/iwarp/index.ts';
import { PORT } from './testing/card-bench.ts';
import { CLOSED_SEED, HostileConnection } from './testing/hostile-connection.ts';
import { fpduOf, readSegment, taggedSegment, untaggedSegment } from './testing/hostile-fpdus.ts';
import { type Damage, type Ends, flag, outcomeOf, type Segment } from './testing/hostile-station.ts';

/** Inputs of each kind, and inputs of a scene: `npm run fuzz` sets the first, and a seed. */
const inputs = Number(process.env['HOSTILE_PACKETS'] ?? 1000);
const perScene = Math.min(inputs, 1000);
const seed = Number(process.env['HOSTILE_SEED'] ?? 46);
const timeout = 24 * 3600_000;
/** After each so many inputs, the healthy connection must have moved its bytes. */
const healthyEvery = 20;

/** Plays `inputs` draws, a scene for each thousand. @returns names of what the card did with some of them */
async function play<Draw>(
  draws: fc.Arbitrary<Draw>,
  begin: (hostile: HostileConnection) => Promise<void>,
  arrive: (hostile: HostileConnection, draw: Draw, index: number) => Promise<void>,
): Promise<ReadonlySet<string>> {
  const seen = new Set<string>();
  const scenes = fc.array(draws, { minLength: perScene, maxLength: perScene, size: 'max' });
  const story = fc.asyncProperty(scenes, async (all) => {
    const hostile = await HostileConnection.create();
    await begin(hostile);
    for (const [index, draw] of all.entries()) {
      await arrive(hostile, draw, index);
      if (index % healthyEvery === 0) await hostile.checkHealthy();
    }
    await hostile.checkLeft();
    for (const name of hostile.outcomes()) seen.add(name);
  });
  const numRuns = Math.ceil(inputs / perScene);
  await fc.assert(story, { seed, numRuns, endOnFailure: true, interruptAfterTimeLimit: timeout });
  return seen;
}

// ---- segments of TCP ----

/** Distances from the sequence number that the card expects: in the window, at its edges, and far away. */
const distances = fc.oneof(
  { weight: 4, arbitrary: fc.constant(0) },
  fc.integer({ min: -3000, max: 3000 }),
  fc.integer({ min: 4000, max: 270_000 }),
  fc.constantFrom(-1, 1, 2 ** 31 - 1, 2 ** 31, -(2 ** 31)),
  fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }),
);
const options = fc.oneof(
  { weight: 3, arbitrary: fc.constant<number[]>([]) },
  fc.constantFrom(
    ...[
      [2, 4, 0, 0],
      [2, 4, 0, 1],
      [3, 3, 255, 0],
      [8, 10, 255, 255, 255, 255, 0, 0, 0, 0, 1, 1],
      [5, 10, 0, 0, 0, 0, 255, 255, 255, 255, 1, 1],
      [5, 34, 0, 0],
      [1, 1, 1, 2],
      [8, 200, 1, 1],
      [2, 0, 2, 0],
    ],
  ),
  fc.array(fc.nat(0xff), { maxLength: 40 }),
);
const damages = fc.oneof(
  { weight: 12, arbitrary: fc.constant<Damage>('none') },
  fc.constantFrom(...(Object.keys(outcomeOf) as Damage[])),
);
const flagSets = fc.oneof(
  { weight: 8, arbitrary: fc.constant(flag.ACK) },
  fc.constantFrom(
    ...[flag.RST, flag.RST | flag.ACK, flag.SYN, flag.SYN | flag.ACK, flag.FIN | flag.ACK, flag.FIN, 0],
  ),
  fc.nat(0xff),
);
interface TcpDraw {
  readonly kind: 'own' | 'stranger' | 'flood' | 'spoofed';
  readonly distance: number;
  readonly flags: number;
  readonly acknowledged: number;
  readonly window: number;
  readonly options: readonly number[];
  readonly payloadBytes: number;
  readonly damage: Damage;
  readonly port: number;
}
const tcpDraws: fc.Arbitrary<TcpDraw> = fc.record({
  kind: fc.oneof(
    { weight: 10, arbitrary: fc.constant('own' as const) },
    fc.constantFrom('stranger' as const, 'flood' as const, 'spoofed' as const),
  ),
  distance: distances,
  flags: flagSets,
  acknowledged: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, distances),
  window: fc.oneof(fc.constantFrom(0, 1, 0xffff), fc.nat(0xffff)),
  options,
  payloadBytes: fc.oneof({ weight: 2, arbitrary: fc.constant(0) }, fc.nat(40), fc.nat(1400)),
  damage: damages,
  port: fc.constantFrom(4791, 4791, 5000, 0, 65_535),
});

const segmentOf = (draw: TcpDraw, expected: number, acknowledgement: number): Segment => ({
  sequence: expected + draw.distance,
  acknowledgement: acknowledgement + draw.acknowledged,
  flags: draw.flags,
  window: draw.window,
  options: draw.options,
  payload: new Uint8Array(draw.payloadBytes).fill(draw.window),
  damage: draw.damage,
});

/**
 * A segment in the name of the healthy connection's other card that RFC 9293 and RFC 5961 have without effect: out of the
 * window, or a RST or SYN in it that is not exactly at the next number. Any other would be the other card's.
 */
function spoofedOf(draw: TcpDraw, expected: number): Segment {
  const segment = segmentOf(draw, expected, 0);
  const isChallenged = draw.distance > 0 && draw.distance < 60_000;
  const distance =
    Math.abs(draw.distance) < 400_000 && !isChallenged ? 2 ** 30 + draw.distance : draw.distance;
  const flags = isChallenged ? [flag.RST, flag.SYN][draw.window & 1]! : draw.flags;
  return { ...segment, sequence: expected + distance, flags };
}

async function segmentArrives(hostile: HostileConnection, draw: TcpDraw, index: number): Promise<void> {
  const row = hostile.rowOf(hostile.connection);
  // A connection that has ended gets some more, then another one begins.
  if (row === undefined || (row.state !== 'ESTABLISHED' && index % 7 === 0)) await hostile.reopen();
  if (draw.kind === 'own') hostile.send(segmentOf(draw, hostile.next, hostile.theirs));
  else if (draw.kind === 'spoofed') {
    const { received } = hostile.rowOf(hostile.scene.numbers.b)!;
    hostile.station.send(hostile.healthyEnds, spoofedOf(draw, received.next));
  } else if (draw.kind === 'flood') {
    // More SYNs than the listener's backlog of four.
    for (let port = 2000; port < 2006; port++)
      hostile.station.send(hostile.station.endsOf(port, PORT), { sequence: draw.window, flags: flag.SYN });
  } else {
    const ends: Ends = hostile.station.endsOf(1000 + (draw.window & 7), draw.port);
    hostile.station.send(ends, segmentOf(draw, 0, 0));
  }
  await hostile.settle();
}

// ---- FPDUs ----

interface FpduDraw {
  readonly form: 'tagged' | 'untagged' | 'read' | 'noise';
  readonly ddp: number;
  readonly rdmap: number;
  readonly key: 'open' | 'closed' | 'healthy' | 'variant' | 'none';
  readonly place: number;
  readonly queue: number;
  readonly messageChange: number;
  readonly messageOffset: number;
  readonly payloadBytes: number;
  readonly lengthChange: number;
  readonly crcChange: number;
  readonly sizes: readonly number[];
}
const usually = <T>(value: T, others: fc.Arbitrary<T>, weight = 20): fc.Arbitrary<T> =>
  fc.oneof({ weight, arbitrary: fc.constant(value) }, others);
const fpduDraws: fc.Arbitrary<FpduDraw> = fc.record({
  form: usually(
    'tagged' as FpduDraw['form'],
    fc.constantFrom<FpduDraw['form']>('untagged', 'read', 'noise'),
    2,
  ),
  ddp: usually(-1, fc.nat(0xff)),
  rdmap: usually(
    -1,
    fc.oneof(
      fc.nat(15).map((opcode) => 0x40 | opcode),
      fc.nat(0xff),
    ),
    6,
  ),
  key: usually(
    'open' as FpduDraw['key'],
    fc.constantFrom<FpduDraw['key']>('closed', 'healthy', 'variant', 'none'),
    3,
  ),
  place: usually(0, fc.oneof(fc.nat(4096), fc.integer({ min: -8, max: 5000 }), fc.constant(2 ** 52)), 4),
  queue: usually(0, fc.nat(0xffff_ffff)),
  messageChange: usually(0, fc.integer({ min: -2, max: 2 })),
  messageOffset: usually(0, fc.nat(0xffff_ffff)),
  payloadBytes: fc.oneof(fc.nat(64), fc.nat(1400)),
  lengthChange: usually(0, fc.integer({ min: -40, max: 2000 }), 20),
  crcChange: usually(0, fc.nat(0xffff_ffff), 20),
  sizes: fc.oneof(
    fc.constant([1460]),
    fc.array(fc.integer({ min: 1, max: 700 }), { minLength: 1, maxLength: 3 }),
  ),
});

/** Streams so far, and message numbers of the present one: of SENDs, and of requests. */
const stream = { count: 0, sends: 1, requests: 1 };

function ddpSegmentOf(hostile: HostileConnection, draw: FpduDraw): Uint8Array {
  const { open, closed, scene } = hostile;
  const keys = {
    open: open.key,
    closed: closed.key,
    healthy: scene.remote.key,
    variant: open.key + 1,
    none: 0x7fff_ff00,
  };
  const tag = keys[draw.key];
  const region = { closed, healthy: scene.remote }[draw.key as 'closed'] ?? open;
  const offset = BigInt(region.address) + BigInt(draw.place);
  const payload = new Uint8Array(draw.payloadBytes).fill(draw.payloadBytes);
  const control = {
    ...(draw.ddp < 0 ? {} : { ddp: draw.ddp }),
    ...(draw.rdmap < 0 ? {} : { rdmap: draw.rdmap }),
  };
  switch (draw.form) {
    case 'tagged':
      return taggedSegment({ ...control, tag, offset, payload });
    case 'untagged': {
      const { queue, messageOffset } = draw;
      const message = stream.sends++ + draw.messageChange;
      return untaggedSegment({
        ...control,
        queue,
        message,
        messageOffset,
        payload: payload.subarray(0, 300),
      });
    }
    case 'read':
      return readSegment(tag, offset, draw.payloadBytes, stream.requests++ + draw.messageChange);
    default:
      return payload;
  }
}

async function fpduArrives(hostile: HostileConnection, draw: FpduDraw, index: number): Promise<void> {
  const row = hostile.rowOf(hostile.connection);
  if (row?.stream === undefined || (row.state !== 'ESTABLISHED' && index % 3 === 0)) {
    await hostile.reopen();
    stream.count++;
    // Few have markers: FPDUs without them are refused by their CRC.
    await hostile.attach({ hasCrc: stream.count % 2, hasMarkers: stream.count % 16 === 0 ? 1 : 0 });
    stream.sends = 1;
    stream.requests = 1;
  }
  const fpdu = fpduOf(ddpSegmentOf(hostile, draw), draw.crcChange);
  if (draw.lengthChange !== 0) {
    const length = Math.max(0, ((fpdu[0]! << 8) | fpdu[1]!) + draw.lengthChange);
    fpdu.set([(length >> 8) & 0xff, length & 0xff]);
  }
  hostile.sendBytes(fpdu, draw.sizes);
  await hostile.settle(12);
}

// ---- MPA ----

const mpaDraws = fc.record({
  key: usually(-1, fc.nat(15)),
  flags: usually(0x40, fc.nat(0xff), 2),
  revision: fc.oneof(fc.constantFrom(1, 2), fc.nat(0xff)),
  lengthChange: usually(0, fc.integer({ min: -20, max: 2000 }), 6),
  privateBytes: fc.oneof(fc.nat(20), fc.nat(600)),
  extra: usually(0, fc.nat(40), 4),
  sizes: fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 3 }),
});
type MpaDraw = typeof mpaDraws extends fc.Arbitrary<infer Draw> ? Draw : never;

/** A request of MPA, read by software as a driver reads it: the card hands over the bytes that were sent. */
async function requestArrives(hostile: HostileConnection, draw: MpaDraw): Promise<void> {
  await hostile.reopen();
  const length = Math.max(0, draw.privateBytes + draw.lengthChange);
  const key = Uint8Array.from('MPA ID Req Frame', (letter) => letter.charCodeAt(0));
  if (draw.key >= 0) key[draw.key]! ^= 0x20;
  const body = new Uint8Array(draw.privateBytes + draw.extra).fill(draw.revision);
  const bytes = Uint8Array.of(...key, draw.flags, draw.revision, length >> 8, length & 0xff, ...body);
  hostile.sendBytes(bytes, draw.sizes);
  await hostile.settle(12);
  const row = hostile.rowOf(hostile.connection)!;
  const into = new Uint8Array(2048);
  let count = 0;
  hostile.scene.bench.b.act(() => {
    count = hostile.tcp.receive(row, into);
  });
  await hostile.settle(2);
  expect(Buffer.compare(into.subarray(0, count), bytes)).toBe(0);
  const parsed = parseMpaFrame(bytes, false);
  if (parsed.kind !== 'frame') return;
  expect(parsed.lengthBytes).toBeLessThanOrEqual(bytes.length);
  expect(hostile.tcp.send(row, encodeMpaFrame(parsed.frame))).toBe(true);
}

describe('a hostile peer on the cable', () => {
  it('RFC 9293, 3.10.7, RFC 5961: its segments of TCP leave another connection alone', {
    timeout,
  }, async () => {
    const seen = await play(tcpDraws, (hostile) => hostile.reopen(), segmentArrives);
    // Every outcome but that of a port that is closed, and of retransmissions: the card has nothing to send here.
    for (const name of ['received', 'damaged', 'unmatched', 'refusedSyns', 'resetsSent'])
      expect([name, seen.has(name)]).toEqual([name, true]);
    for (const name of ['duplicates', 'outOfOrder', 'lost'])
      expect([name, seen.has(name)]).toEqual([name, true]);
  });

  it('RFC 5040, 7, RFC 5041, 7: its FPDUs reach only memory of its own', { timeout }, async () => {
    const seen = await play(fpduDraws, async () => {}, fpduArrives);
    // STag, bounds, another protection domain, no right; queue, no buffer, MSN, offset, version; CRC; opcode.
    const errors = [
      ...[0x1100, 0x1101, 0x1102, 0x0102],
      ...[0x1201, 0x1202, 0x1203, 0x1204, 0x1206],
      0x2002,
      0x0206,
    ];
    const missing = errors
      .map((error) => `Terminate 0x${error.toString(16)}`)
      .filter((name) => !seen.has(name));
    expect(missing).toEqual([]);
  });

  it('RFC 5044, 7.1: its requests of MPA reach software as they were sent', { timeout }, async () => {
    await play(mpaDraws, async () => {}, requestArrives);
  });

  it('is judged: a changed byte, a frame that is counted twice, and a connection that is left are seen', async () => {
    const hostile = await HostileConnection.create();
    await hostile.reopen();
    await hostile.checkHealthy();
    hostile.checkAccounts();
    const { counters } = hostile.scene.bench.b.dataPath.blocks.tcpEngine;
    counters.damaged++;
    expect(() => hostile.checkAccounts()).toThrow();
    counters.damaged--;
    hostile.closed.write(Uint8Array.of(1), 100);
    expect(() => hostile.checkAccounts()).toThrow();
    hostile.closed.fill(CLOSED_SEED);
    hostile.rowOf(hostile.connection)!.isKnown = false;
    await expect(hostile.checkLeft()).rejects.toThrow('connections');
  });
});
