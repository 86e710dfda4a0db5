/**
 * Hostile clients at the far end of a cable, on a real socket: whole frames in arbitrary pieces, frames without a header,
 * giants, impossible lengths, meaningless bytes, clients that disconnect within a frame or a prefix, that do not read, or that
 * come second. The judge is a reader of the stream that shares no code with the server. The cable must carry exactly the frames
 * that it finds, byte for byte, once, in order; every other frame is counted under one reason; only clients that sent invalid
 * data are disconnected; and the next client is served like the first. Source of the stream's form: QEMU, net/stream.c and
 * net/net.c.
 */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { channelKey, hcaName } from '../../machine/index.ts';
import { configurationOf } from '../../machine/profile/index.ts';
import { ChannelReader, ChannelWriter, LogicalProcess, SteppedRunner } from '../../sim/index.ts';
import { EthernetPort, withTag } from '../../wire/index.ts';
import { sendWith } from '../slot/client/socket.ts';
import { FrameServer, nativeLibrary, nativeUnavailableReason, Reactor } from '../slot/index.ts';
import { Connection, NOTHING_YET } from '../slot/native/connection.ts';
import { connectTo } from '../slot/native/listener.ts';
import { servedProfile } from './serve-options.ts';
import { openEndName, planServed } from './served-plan.ts';
import { WireEnd } from './wire-end.ts';

/** Number of frames in all, and of steps in a story: `npm run fuzz` sets the first, and a seed. */
const frameCount = Number(process.env['HOSTILE_PACKETS'] ?? 2000);
const seed = Number(process.env['HOSTILE_SEED'] ?? 19);
const perStory = 40;
/** Frames per step, on average. */
const framesPerStep = 2;

const usPs = 1_000_000;
const PREFIX = 4;
const HEADER = 14;
/** QEMU's NET_BUFSIZE: longer data are not a frame. */
const GIANT = 4096 + 65_536;
const MTU = 1500;

type Step =
  | { readonly does: 'send'; readonly lengths: readonly number[]; readonly pieces: readonly number[] }
  | { readonly does: 'begin'; readonly length: number; readonly bytes: number }
  | { readonly does: 'nonsense'; readonly bytes: Uint8Array }
  | { readonly does: 'impossible'; readonly length: number }
  | { readonly does: 'come' | 'comeSecond' | 'hangUp' | 'vanish' | 'read' }
  | { readonly does: 'wait'; readonly us: number }
  | { readonly does: 'answer'; readonly length: number; readonly count: number };

const lengths = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: HEADER, max: HEADER + MTU }) },
  { weight: 2, arbitrary: fc.constantFrom(0, 1, 13, 14, 59, 60, 1513, 1514, 1515, 1600, 9014, GIANT) },
);
const steps: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      does: fc.constant('send'),
      lengths: fc.array(lengths, { minLength: 1, maxLength: 6 }),
      pieces: fc.array(fc.oneof(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 70_000 })), {
        minLength: 1,
        maxLength: 4,
      }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      does: fc.constant('begin'),
      length: lengths,
      bytes: fc.oneof(fc.nat(PREFIX), fc.nat(GIANT)),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ does: fc.constant('nonsense'), bytes: fc.uint8Array({ maxLength: 300 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      does: fc.constant('impossible'),
      length: fc.oneof(
        fc.constantFrom(GIANT + 1, 0x8000_0000, 0xffff_ffff),
        fc.integer({ min: GIANT + 1, max: 0xffff_ffff }),
      ),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({ does: fc.constantFrom('come', 'come', 'comeSecond', 'hangUp', 'read', 'read') }),
  },
  { weight: 1, arbitrary: fc.record({ does: fc.constantFrom('hangUp', 'hangUp', 'hangUp', 'vanish') }) },
  { weight: 4, arbitrary: fc.record({ does: fc.constant('wait'), us: fc.constantFrom(1, 100, 3000) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      does: fc.constant('answer'),
      length: fc.integer({ min: HEADER, max: 1514 }),
      count: fc.nat(20),
    }),
  },
);

/** Bytes sent by one client, parsed as QEMU does. */
class Stream {
  #rest = Buffer.alloc(0);
  isNonsense = false;

  /** The frames that these bytes complete. */
  take(bytes: Uint8Array): Buffer[] {
    this.#rest = Buffer.concat([this.#rest, bytes]);
    const frames: Buffer[] = [];
    while (this.#rest.length >= PREFIX && !this.isNonsense) {
      const length = this.#rest.readUInt32BE();
      this.isNonsense = length > GIANT;
      if (this.isNonsense || this.#rest.length < PREFIX + length) break;
      frames.push(this.#rest.subarray(PREFIX, PREFIX + length));
      this.#rest = this.#rest.subarray(PREFIX + length);
    }
    return frames;
  }
}

const openDescriptorCount = (): number => readdirSync('/proc/self/fd').length;

class Scene {
  readonly #folder = mkdtempSync(join(tmpdir(), 'hca-stranger-'));
  readonly #server: FrameServer;
  readonly #reactor: Reactor;
  readonly #end: WireEnd;
  readonly #port: EthernetPort;
  readonly #lp = new LogicalProcess(hcaName(0));
  readonly #runner: SteppedRunner;
  readonly #trainedUs: number;
  readonly #buffer = new Uint8Array(new ArrayBuffer(2 ** 20));
  #client: Connection | undefined;
  #stream = new Stream();
  /** Bytes read by the connected client, and bytes handed to it. */
  #read: Buffer[] = [];
  #handed: Buffer[] = [];
  #stamp = 0;
  /** A client has disconnected with unread bytes: Linux may report that before its own bytes (ECONNRESET). */
  #hasVanished = false;
  /** Whole frames of all clients in order; and those that a cable carries, padded. */
  readonly #sent: Buffer[] = [];
  readonly #arrived: Buffer[] = [];
  /** Disconnected clients, and those that had to be. */
  #ends = 0;
  #seconds = 0;

  constructor() {
    const values = { 'hca.capability.linkLayer': 'ethernet', 'ethernet.mtuBytes': MTU };
    const config = configurationOf({ profile: servedProfile, set: values });
    const plan = planServed({ config, hcaCount: 1, cabling: 'socket', faults: [] });
    this.#trainedUs = 20 + 2 * config.ethernet.trainingUs;
    this.#end = new WireEnd(plan, 0, (bytes, at, length) => this.#toClient(bytes, at, length));
    const [near, far] = [hcaName(0), openEndName(0)];
    this.#port = new EthernetPort({
      lp: this.#lp,
      config: withTag(config.ethernet),
      writer: new ChannelWriter(plan.channels[channelKey(near, far)]!),
      reader: new ChannelReader(plan.channels[channelKey(far, near)]!),
      seed: 1,
    });
    const frameArrived = (slot: number): void => {
      const start = this.#port.frameStart(slot);
      const bytes = this.#port.rxBytes.subarray(start, start + this.#port.frameBytes(slot));
      this.#arrived.push(Buffer.from(bytes));
      this.#port.consume(slot);
    };
    const silent = { spaceFreed: () => {}, linkChanged: () => {} };
    this.#port.connect({ receiver: { frameArrived }, sender: silent, link: silent });
    this.#runner = new SteppedRunner([this.#lp, this.#end.lp]);
    this.#server = new FrameServer({
      path: join(this.#folder, 'wire'),
      onFrame: (bytes, at, length) => this.#touch(() => this.#end.take(bytes, at, length)),
      hasRoom: () => this.#end.hasRoom,
      onConnect: () => this.#touch(() => this.#end.setPlugged(true)),
      onDisconnect: () => {
        this.#ends++;
        this.#touch(() => this.#end.setPlugged(false));
      },
    });
    this.#reactor = new Reactor([this.#server]);
    this.#port.setEnabled(true);
  }

  async step(step: Step): Promise<void> {
    switch (step.does) {
      case 'come':
        return this.#come();
      case 'comeSecond':
        return this.#comeSecond();
      case 'hangUp':
        this.#readAll();
        return this.#hangUp();
      case 'vanish':
        this.#hasVanished ||= this.#client !== undefined;
        return this.#hangUp();
      case 'read':
        return this.#readAll();
      case 'wait':
        return this.#run(step.us);
      case 'answer':
        for (let count = 0; count < step.count; count++) {
          this.#touch(() => this.#port.send(this.#frameOf(step.length), 0, step.length));
          this.#run(2);
        }
        return;
      case 'send': {
        const stream = Buffer.concat(step.lengths.map((length) => this.#framed(length)));
        for (let at = 0, piece = 0; at < stream.length; piece++) {
          const end = at + step.pieces[piece % step.pieces.length]!;
          // Single bytes take long: the first and last positions of a stream are where they matter.
          this.#write(stream.subarray(at, piece > 40 ? stream.length : end));
          at = piece > 40 ? stream.length : end;
        }
        return;
      }
      case 'begin':
        return this.#write(this.#framed(step.length).subarray(0, step.bytes));
      case 'nonsense':
        return this.#write(step.bytes);
      case 'impossible': {
        const prefix = Buffer.alloc(PREFIX + 8);
        prefix.writeUInt32BE(step.length);
        return this.#write(prefix);
      }
    }
  }

  /** The last client leaves, a new one connects and is served; then every frame is accounted for. */
  end(): void {
    this.#readAll();
    this.#hangUp();
    this.#come();
    this.#run(this.#trainedUs);
    const before = this.#arrived.length;
    this.#write(this.#framed(100));
    this.#run(1000);
    expect(this.#arrived).toHaveLength(before + 1);
    this.#touch(() => this.#port.send(this.#frameOf(80), 0, 80));
    this.#run(1000);
    this.#readAll();
    this.#hangUp();
    this.#account();
    this.#reactor.close();
    rmSync(this.#folder, { recursive: true });
  }

  #account(): void {
    const { clients, refused, framesFromClient } = this.#server.counters;
    const { transmitted } = this.#end.ledger;
    expect(refused, 'second clients').toBe(this.#seconds);
    expect(this.#ends, 'clients that have gone').toBe(clients);
    const { unfitCount, forgottenCount, waitingCount } = this.#end;
    const discarded = transmitted['discardedFrames']!;
    const onCable = transmitted['frames']!;
    const { deliveredFrames, linkDownDrops } = this.#port.received;
    expect(framesFromClient, 'frames taken').toBe(
      unfitCount + forgottenCount + waitingCount + discarded + onCable,
    );
    expect(onCable, 'frames on the cable').toBe(deliveredFrames + linkDownDrops);
    // The arrived bytes are a part of the sent ones, in order.
    let at = 0;
    for (const frame of this.#arrived) {
      while (at < this.#sent.length && !sameFrame(this.#sent[at]!, frame)) at++;
      expect(at, 'a frame that nobody sent, or not in this order').toBeLessThan(this.#sent.length);
      at++;
    }
    const unfit = this.#sent.filter(({ length }) => length < HEADER || length > HEADER + MTU + TAG).length;
    if (this.#hasVanished) expect(unfitCount).toBeLessThanOrEqual(unfit);
    else expect(unfitCount).toBe(unfit);
    if (this.#hasVanished) expect(this.#sent.length).toBeGreaterThanOrEqual(framesFromClient);
    else expect(this.#sent, 'frames sent').toHaveLength(framesFromClient);
  }

  #touch(act: () => void): void {
    act();
    this.#runner.touched();
  }

  #run(us: number): void {
    this.#runner.runTo(this.#runner.nowPs + us * usPs);
    this.#settle();
    // Bytes that the socket had refused have room now.
    this.#runner.runTo(this.#runner.nowPs + usPs);
    this.#settle();
  }

  #settle(): void {
    while (this.#reactor.poll(0));
  }

  #frameOf(length: number): Buffer {
    const frame = Buffer.alloc(length, this.#stamp);
    if (length >= HEADER + 4) frame.writeUInt32BE(this.#stamp, HEADER);
    this.#stamp++;
    return frame;
  }

  #framed(length: number): Buffer {
    const prefix = Buffer.alloc(PREFIX);
    prefix.writeUInt32BE(length);
    return Buffer.concat([prefix, this.#frameOf(length)]);
  }

  #toClient(bytes: Uint8Array, at: number, length: number): void {
    const { framesToClient } = this.#server.counters;
    this.#server.send(bytes, at, length);
    const isHanded = this.#server.counters.framesToClient > framesToClient;
    if (isHanded) this.#handed.push(Buffer.from(bytes.subarray(at, at + length)));
  }

  #come(): void {
    if (this.#client !== undefined) return;
    this.#client = new Connection(connectTo(this.#server.path), 0);
    this.#stream = new Stream();
    this.#read = [];
    this.#handed = [];
    this.#settle();
    expect(this.#server.hasClient).toBe(true);
  }

  #comeSecond(): void {
    if (this.#client === undefined || this.#stream.isNonsense) return;
    const second = new Connection(connectTo(this.#server.path), 0);
    this.#settle();
    expect(second.receive(nativeLibrary().addressOf(this.#buffer.buffer), 10)).not.toBe(NOTHING_YET);
    second.close();
    this.#seconds++;
  }

  #hangUp(): void {
    if (this.#client === undefined) return;
    const isHungUpOn = !this.#server.hasClient;
    expect(isHungUpOn, 'a client that is hung up on').toBe(this.#stream.isNonsense);
    this.#client.close();
    this.#client = undefined;
    // A client whose frames have no room is not read before they have, so its end is not noticed earlier.
    for (let turn = 0; turn < 1000 && this.#server.hasClient; turn++) this.#run(100);
    expect(this.#server.hasClient, 'a client that has gone').toBe(false);
  }

  #write(bytes: Uint8Array): void {
    if (this.#client === undefined) return;
    for (let at = 0, turn = 0; at < bytes.length && turn < 200; turn++) {
      let count = 0;
      try {
        count = sendWith(this.#client.descriptor, bytes.subarray(at));
      } catch (error) {
        // Only clients that have sent invalid data are disconnected.
        if (!this.#stream.isNonsense) throw error;
        return;
      }
      this.#sent.push(...this.#stream.take(bytes.subarray(at, at + count)));
      at += count;
      this.#settle();
      if (at < bytes.length) this.#run(300);
    }
  }

  /** Compares received bytes with the frames that were handed out, in order. */
  #readAll(): void {
    if (this.#client === undefined) return;
    const address = nativeLibrary().addressOf(this.#buffer.buffer);
    for (;;) {
      const count = this.#client.receive(address, this.#buffer.length);
      if (count <= 0) break;
      this.#read.push(Buffer.from(this.#buffer.subarray(0, count)));
      this.#settle();
    }
    const whole = Buffer.concat(
      this.#handed.flatMap((frame) => {
        const prefix = Buffer.alloc(PREFIX);
        prefix.writeUInt32BE(frame.length);
        return [prefix, frame];
      }),
    );
    const read = Buffer.concat(this.#read);
    expect(Buffer.compare(read, whole.subarray(0, read.length))).toBe(0);
    if (!this.#stream.isNonsense) expect(read.length).toBe(whole.length);
  }
}

const TAG = 4;
const FRAME_MIN = 60;

/** Compares the frames; a short one is padded on the cable. */
function sameFrame(sent: Buffer, arrived: Buffer): boolean {
  if (arrived.length !== Math.max(sent.length, FRAME_MIN)) return false;
  return (
    Buffer.compare(sent, arrived.subarray(0, sent.length)) === 0 &&
    arrived.subarray(sent.length).every((byte) => byte === 0)
  );
}

const unavailable = nativeUnavailableReason();
if (unavailable !== undefined) console.warn(`skipped: ${unavailable}`);

describe.skipIf(unavailable !== undefined)('for any input of a client on the socket of a cable', () => {
  it('frames arrive intact, once and in order, or are counted; the next client is served', {
    timeout: 24 * 3600_000,
  }, async () => {
    const before = openDescriptorCount();
    const stories = fc.array(steps, { minLength: perStory, maxLength: perStory, size: 'max' });
    await fc.assert(
      fc.asyncProperty(stories, async (story) => {
        const scene = new Scene();
        await scene.step({ does: 'come' });
        for (const step of story) await scene.step(step);
        scene.end();
      }),
      { seed, numRuns: Math.ceil(frameCount / (perStory * framesPerStep)), endOnFailure: true },
    );
    expect(openDescriptorCount()).toBe(before);
  });
});
