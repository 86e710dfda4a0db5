/** Acts: requests in every form, lists of buffers, inline, immediate, unsignalled, atomic, fenced; and their results. */
import type { JsonValue } from '../../machine/program.ts';
import {
  IBV_SEND_FENCE,
  IBV_SEND_INLINE,
  IBV_SEND_SIGNALED,
  IBV_WR_RDMA_WRITE_WITH_IMM,
  IBV_WR_SEND_WITH_IMM,
  type IbvSge,
  postRecv,
  postSend,
} from '../../userlib/index.ts';
import { type Outcome, statusesOf, take, takeAll } from './outcomes.ts';
import {
  areEqual,
  compareSwapOf,
  digestOf,
  fetchAddOf,
  patternOf,
  readOf,
  receiveOf,
  remoteAt,
  segment,
  sendOf,
  writeOf,
} from './requests.ts';
import type { Pair, Side } from './side.ts';

const formsBytes = 32_768;

/** Lists of buffers on either side, inline, immediate, atomics, unsignalled. */
export async function forms(side: Side, name: string): Promise<JsonValue> {
  const cap = { maxSendSge: 8, maxRecvSge: 8, maxInlineData: 200 };
  const pair = await side.pair(name, { bufferBytes: formsBytes, cap });
  const { buffer, qp } = pair;
  side.write(buffer, patternOf(5, 8192));
  const pieces = (base: number): IbvSge[] => [
    segment(buffer, base + 3, 1),
    segment(buffer, base + 100, 0),
    segment(buffer, base + 200, 1500),
    segment(buffer, base + 4090, 12),
    segment(buffer, base + 5000, 777),
  ];
  const inline = { sendFlags: IBV_SEND_INLINE | IBV_SEND_SIGNALED };
  const posted: [string, number][] = [
    ['gather', postSend(qp, sendOf(pieces(0)))],
    ['immediate', postSend(qp, sendOf([], { opcode: IBV_WR_SEND_WITH_IMM, immData: 0xdead_beef }))],
    ['inline', postSend(qp, sendOf([segment(buffer, 10, 100), segment(buffer, 300, 100)], inline))],
    [
      'write with immediate',
      postSend(
        qp,
        writeOf([segment(buffer, 0, 2000)], remoteAt(pair, 16_384), {
          opcode: IBV_WR_RDMA_WRITE_WITH_IMM,
          immData: 0x8000_0001,
        }),
      ),
    ],
    ['inline write', postSend(qp, writeOf([segment(buffer, 20, 64)], remoteAt(pair, 20_000), inline))],
    ['empty inline', postSend(qp, writeOf([segment(buffer, 20, 0)], remoteAt(pair, 20_000), inline))],
  ];
  const sent = await take(pair.sendCq, 6);
  await side.barrier(`${name} written`);
  // Unsignalled ones complete with the next signalled one, or in error.
  for (let index = 0; index < 5; index++)
    postSend(
      qp,
      writeOf([segment(buffer, index, 1)], remoteAt(pair, 24_000 + index), { sendFlags: 0, wrId: index }),
    );
  postSend(qp, readOf(pieces(8192), remoteAt(pair, 16_384), { wrId: 9 }));
  const signalled = await take(pair.sendCq, 1);
  const surplus = await takeAll(pair.sendCq);
  const scattered = [1, 1500, 12, 777].reduce(
    ({ at, bytes }, length, index) => {
      const offset = [3, 200, 4090, 5000][index]!;
      bytes.push(...side.read(buffer, length, 8192 + offset));
      return { at: at + length, bytes };
    },
    { at: 0, bytes: [] as number[] },
  ).bytes;
  const expected = await side.hear(`${name} target`);
  return {
    errors: posted.filter(([, error]) => error !== 0),
    sent: statusesOf(sent),
    opcodes: sent.map(({ opcode }) => opcode),
    signalled: signalled.map(({ wrId, status, byteLen }) => [wrId, status, byteLen]),
    surplus: statusesOf(surplus),
    isScattered: digestOf(Uint8Array.from(scattered)) === expected,
    atomics: await atomics(side, pair),
  };
}

/** Both atomics on one word of the peer, which initially holds 2^63 − 1. */
async function atomics(side: Side, pair: Pair): Promise<JsonValue> {
  const { memory } = side.program;
  const place = remoteAt(pair, 28_672);
  const found: string[] = [];
  const result = (): string => memory.readUint64(pair.buffer.address + 30_000).toString();
  const cell = segment(pair.buffer, 30_000, 8);
  const requests = [
    fetchAddOf(cell, place, 1n),
    compareSwapOf(cell, place, 0n, 5n),
    compareSwapOf(cell, place, 2n ** 63n, 2n ** 64n - 1n),
    fetchAddOf(cell, place, 3n),
    fetchAddOf(cell, place, 0n),
  ];
  for (const request of requests) {
    postSend(pair.qp, request);
    const [taken] = await take(pair.sendCq, 1);
    found.push(`${taken!.status} ${taken!.byteLen} ${result()}`);
  }
  return found;
}

export async function formsPartner(side: Side, name: string): Promise<JsonValue> {
  const pair = await side.pair(name, {
    bufferBytes: formsBytes,
    cap: { maxSendSge: 8, maxRecvSge: 8 },
    beforeReady: ({ qp, buffer }) => {
      side.program.memory.writeUint64(buffer.address + 28_672, 2n ** 63n - 1n);
      const lists = [
        [
          segment(buffer, 1, 1000),
          segment(buffer, 2000, 0),
          segment(buffer, 4000, 1289),
          segment(buffer, 9000, 10),
        ],
        [],
        [segment(buffer, 12_000, 150), segment(buffer, 12_500, 150)],
        [],
      ];
      lists.forEach((list, index) => {
        postRecv(qp, receiveOf(list, index));
      });
    },
  });
  const received = await take(pair.recvCq, 4);
  await side.barrier(`${name} written`);
  const source = patternOf(5, 8192);
  const gathered = concatenated([
    source.subarray(3, 4),
    source.subarray(200, 1700),
    source.subarray(4090, 4102),
    source.subarray(5000, 5777),
  ]);
  const scattered = concatenated([
    side.read(pair.buffer, 1000, 1),
    side.read(pair.buffer, 1289, 4000),
    side.read(pair.buffer, 1, 9000),
  ]);
  const inline = concatenated([side.read(pair.buffer, 150, 12_000), side.read(pair.buffer, 50, 12_500)]);
  await side.tell(`${name} target`, digestOf(side.read(pair.buffer, 2290, 16_384)));
  return {
    received: received.map(({ wrId, status, opcode, byteLen, wcFlags, immData }: Outcome) =>
      wcFlags === 0 ? [wrId, status, opcode, byteLen] : [wrId, status, opcode, byteLen, immData],
    ),
    isScattered: areEqual(scattered, gathered),
    isInline: areEqual(inline, concatenated([source.subarray(10, 110), source.subarray(300, 400)])),
    isWritten: areEqual(side.read(pair.buffer, 2000, 16_384), source.subarray(0, 2000)),
    isInlineWritten: areEqual(side.read(pair.buffer, 64, 20_000), source.subarray(20, 84)),
  };
}

function concatenated(parts: readonly Uint8Array[]): Uint8Array {
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}

/** A fenced WRITE after a READ of the same word: the READ must see the old word. */
export async function fence(side: Side, name: string): Promise<JsonValue> {
  const pair = await side.pair(name, { bufferBytes: 65_536 });
  side.write(pair.buffer, new Uint8Array(64).fill(1));
  const sendFlags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
  const seen: number[] = [];
  for (let round = 0; round < 4; round++) {
    postSend(pair.qp, readOf([segment(pair.buffer, 4096, 30_000)], remoteAt(pair, 0), { sendFlags: 0 }));
    // The data just read are sent at once: without the fence they would be the old ones.
    postSend(pair.qp, writeOf([segment(pair.buffer, 4096, 30_000)], remoteAt(pair, 32_768), { sendFlags }));
    await take(pair.sendCq, 1);
    postSend(pair.qp, readOf([segment(pair.buffer, 36_000, 8)], remoteAt(pair, 32_768 + 29_992)));
    await take(pair.sendCq, 1);
    seen.push(side.read(pair.buffer, 1, 36_000)[0]!);
    side.write(pair.buffer, new Uint8Array(30_000), 4096);
    postSend(pair.qp, fetchAddOf(segment(pair.buffer, 0, 8), remoteAt(pair, 29_992), 1n));
    await take(pair.sendCq, 1);
  }
  return seen;
}
