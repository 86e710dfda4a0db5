/** Queries for routes: the sent bytes are compared with bytes written out here from IBTA volume 1, 15.2. */
import { describe, expect, it } from 'vitest';
import { errnoNumbers } from '../uapi.ts';
import type { Path } from './path.ts';
import { PathQueries } from './path-queries.ts';

const [source, destination] = [1, 2].map((fill) => new Uint8Array(16).fill(fill)) as [Uint8Array, Uint8Array];
const cpu = undefined as never;

/** Queries to a manager at LID 9, with timers that the spec makes expire. */
function asked() {
  const sent: { bytes: Uint8Array; to: unknown }[] = [];
  const timers: { delayPs: number; run: (() => void) | undefined }[] = [];
  const outcomes: (Path | number)[] = [];
  const queries = new PathQueries({
    timers: {
      after: (delayPs, run) => {
        const timer = { delayPs, run: (() => run(cpu)) as (() => void) | undefined };
        timers.push(timer);
        return {
          cancel: () => {
            timer.run = undefined;
          },
        };
      },
    },
    manager: { lid: 9, serviceLevel: 0 },
    send: (_cpu, bytes, to) => sent.push({ bytes: bytes.slice(), to }),
  });
  queries.ask(cpu, source, destination, 2000, (outcome) => outcomes.push(outcome));
  const receive = (bytes: Uint8Array): void =>
    queries.receive(cpu, { bytes, from: { lid: 9, serviceLevel: 0 } });
  return { queries, sent, timers, outcomes, receive };
}

/** GetResp of LID 5 to LID 6, MTU 2048, 10 Gbit/s, 2^14. */
function answerTo(query: Uint8Array): Uint8Array {
  const bytes = query.slice();
  bytes[3] = 0x81;
  bytes.set([0, 6, 0, 5], 0x38 + 40);
  bytes.set([0x84, 0x83, 0x8e], 0x38 + 54);
  return bytes;
}

describe('a query for a path', () => {
  it('IBTA 15.2.5.16: is a Get of the path record between two GIDs, reversible, in the default partition', () => {
    const { sent } = asked();
    expect(sent.length).toBe(1);
    const { bytes, to } = sent[0]!;
    expect(to).toEqual({ lid: 9, serviceLevel: 0 });
    expect([...bytes.subarray(0, 4)]).toEqual([1, 3, 2, 1]);
    expect([...bytes.subarray(0x10, 0x18)]).toEqual([0, 0x35, 0, 0, 0, 0, 0, 0]);
    // Bits 2, 3, 11, 12, 13 of the component mask.
    expect([...bytes.subarray(0x30, 0x38)]).toEqual([0, 0, 0, 0, 0, 0, 0x38, 0x0c]);
    expect(bytes.subarray(0x38 + 8, 0x38 + 24)).toEqual(destination);
    expect(bytes.subarray(0x38 + 24, 0x38 + 40)).toEqual(source);
    expect([...bytes.subarray(0x38 + 49, 0x38 + 52)]).toEqual([0x81, 0xff, 0xff]);
  });

  it('ends with the path in the answer, and accepts no other', () => {
    const { queries, sent, timers, outcomes, receive } = asked();
    const foreign = answerTo(sent[0]!.bytes);
    foreign[15] = 99;
    receive(foreign);
    receive(sent[0]!.bytes);
    expect(outcomes).toEqual([]);
    receive(answerTo(sent[0]!.bytes));
    receive(answerTo(sent[0]!.bytes));
    expect(outcomes).toMatchObject([
      { local: { lid: 5 }, remote: { lid: 6 }, mtu: 4, rate: 3, packetLifeTime: 14, serviceLevel: 0 },
    ]);
    expect(queries.pendingCount).toBe(0);
    expect(timers.every(({ run }) => run === undefined)).toBe(true);
  });

  it('ends with EINVAL if the path does not exist', () => {
    const { sent, outcomes, receive } = asked();
    const refused = answerTo(sent[0]!.bytes);
    refused[4] = 3;
    receive(refused);
    expect(outcomes).toEqual([errnoNumbers.EINVAL]);
  });

  it('is sent ten times within its time, and ends with ETIMEDOUT; a late answer is dropped', () => {
    const { queries, sent, timers, outcomes, receive } = asked();
    for (let index = 0; index < 10; index++) {
      expect(outcomes).toEqual([]);
      expect(timers[index]!.delayPs).toBe(200e9);
      timers[index]!.run!();
    }
    expect(sent.map(({ bytes }) => bytes)).toEqual(Array.from({ length: 10 }, () => sent[0]!.bytes));
    expect(outcomes).toEqual([errnoNumbers.ETIMEDOUT]);
    receive(answerTo(sent[0]!.bytes));
    expect(outcomes.length).toBe(1);
    expect(queries.pendingCount).toBe(0);
  });

  it('is dropped with the device, without a result', () => {
    const { queries, timers, outcomes } = asked();
    queries.close();
    expect([queries.pendingCount, outcomes.length, timers[0]!.run]).toEqual([0, 0, undefined]);
  });
});
