import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { readCapture } from '../../analyser/capture/index.ts';
import { defaultsOf } from '../../base/index.ts';
import { nativeUnavailableReason } from '../slot/index.ts';
import { Connection } from '../slot/native/connection.ts';
import { nativeLibrary } from '../slot/native/library.ts';
import { connectTo } from '../slot/native/listener.ts';
import { servingParameters } from './parameters.ts';
import { renderServeReport } from './render-serve-report.ts';
import { ServeLoop } from './serve-loop.ts';
import { serveOrderOf } from './serve-options.ts';
import { BenchGuestMemory } from './testing/slot-bench.ts';

const unavailable = nativeUnavailableReason();
const folder = mkdtempSync(join(tmpdir(), 'hca-loop-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** A loop with a guest in its slot and a third-party endpoint at its cable, for which it waits this long in real time. */
function loopWithStranger(holdMs: number) {
  const wire = join(folder, `wire-${holdMs}`);
  const set = { 'hca.capability.linkLayer': 'ethernet' };
  const notices: string[] = [];
  const loop = new ServeLoop(serveOrderOf({ socket: join(folder, `slot-${holdMs}`), wire, set }), {
    onNotice: (text) => notices.push(text),
    serving: { ...defaultsOf(servingParameters), strangerHoldMs: holdMs },
  });
  const frames = loop.frames!;
  loop.emulation.slots[0]!.clientConnected(new BenchGuestMemory(2 ** 20));
  const stranger = new Connection(connectTo(wire), 0);
  const buffer = new ArrayBuffer(2 ** 21);
  const address = nativeLibrary().addressOf(buffer);
  const frame = new Uint8Array(1000);
  onTestFinished(() => {
    stranger.close();
    loop.close();
  });
  return {
    loop,
    notices,
    /** The third-party endpoint reads all available bytes. */
    read: () => stranger.receive(address, buffer.byteLength),
    /** Sends frames as if they came from the cable. */
    bringForth: (count: number): void => {
      for (let at = 0; at < count; at++) frames.send(frame, 0, frame.length);
    },
    /** Runs turn after turn, and after each of them the next step of the story: until its end. */
    play: (story: Generator<void>): void =>
      loop.run(() => {
        if (story.next().done) loop.stop();
        else loop.reactor.wake();
      }),
  };
}

it.skipIf(unavailable !== undefined)(
  'writes the packets of the cable when serving fails, and reports where',
  () => {
    const file = join(folder, 'failed.pcapng');
    const notices: string[] = [];
    const capture = { ends: [{ node: 0 }], sizeBytes: 2 ** 20, file };
    const order = serveOrderOf({ socket: join(folder, 'slot-failed'), analysis: { capture } });
    const loop = new ServeLoop(order, { onNotice: (text) => notices.push(text) });
    loop.reactor.wake();
    expect(() =>
      loop.run(() => {
        throw new Error('a defect');
      }),
    ).toThrow('a defect');
    expect(readCapture(readFileSync(file)).interfaces.map(({ name }) => name)).toEqual(['hca0']);
    expect(notices).toEqual([`${file} has the packets up to the failure`]);
    loop.close();
  },
);

describe.skipIf(unavailable !== undefined)(
  'the loop, with a third-party endpoint at the end of the cable',
  () => {
    it('lets no time pass while the endpoint has much to read, and drops none of its frames', () => {
      // Longer than a busy machine takes for a few turns.
      const { loop, read, bringForth, play } = loopWithStranger(60_000);
      const { time } = loop.emulation;
      play(
        (function* () {
          while (!loop.frames!.hasClient) yield;
          bringForth(600);
          yield;
          const { sliceCount } = time;
          for (let turn = 0; turn < 5; turn++) yield;
          expect(time.sliceCount).toBe(sliceCount);
          while (read() > 0) yield;
          yield;
          expect(time.sliceCount).toBeGreaterThan(sliceCount);
        })(),
      );
      expect(loop.report().stranger).toMatchObject({
        framesToClient: 600,
        unreadFrames: 0,
        holds: 1,
        expiredHolds: 0,
      });
    });

    it('lets time pass after a limit if the endpoint reads nothing, and reports dropped frames', () => {
      const holdMs = 200;
      const { loop, notices, read, bringForth, play } = loopWithStranger(holdMs);
      const { time } = loop.emulation;
      play(
        (function* () {
          while (!loop.frames!.hasClient) yield;
          bringForth(2000);
          const { sliceCount } = time;
          while (time.sliceCount < sliceCount + 3) yield;
          bringForth(10);
          while (read() > 0) yield;
          bringForth(600);
          yield;
        })(),
      );
      const report = loop.report();
      const { unreadFrames, framesToClient, holds, expiredHolds, heldMs } = report.stranger!;
      expect([holds, expiredHolds]).toEqual([2, 1]);
      expect(heldMs).toBeGreaterThanOrEqual(holdMs);
      expect(unreadFrames).toBeGreaterThan(10);
      expect(unreadFrames + framesToClient).toBe(2610);
      expect(notices.filter((text) => text.includes('does not read'))).toHaveLength(1);
      expect(renderServeReport(report)).toMatch(
        / frames not taken; time stood still 2 times for \d+ ms until they had read, 1 of them until they expired\n/,
      );
    });
  },
);
