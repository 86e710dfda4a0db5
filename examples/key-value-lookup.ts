/**
 * A one-sided key-value lookup: the server puts a hash table into memory and then does nothing; the client finds each
 * key by an RDMA READ of one bucket, with several reads in flight. The server's core stays idle.
 *
 *     node examples/key-value-lookup.ts
 */
import {
  connectRc,
  createBuffer,
  createCq,
  createRcQps,
  IBV_SEND_SIGNALED,
  IBV_WC_SUCCESS,
  IBV_WR_RDMA_READ,
  IbvWc,
  Machine,
  openEndpoint,
  type ProgramContext,
  postSend,
  spinCq,
} from '../index.ts';

/** A bucket is one cache line: key and value of four entries, 8 bytes each. */
const bucketBytes = 64;
const bucketCount = 4096;
const entriesPerBucket = 4;
const keyCount = 4000;
const depth = 16;

const bucketOf = (key: number): number => Math.imul(key, 0x9e3779b1) >>> 20;
const valueFor = (key: number): bigint => BigInt(key) * 1_000_003n;

/** Keys that fit into their bucket; server and client compute the same set. */
function keysInTable(): number[] {
  const used = new Uint8Array(bucketCount);
  const keys: number[] = [];
  for (let key = 1; key <= keyCount; key++) {
    const bucket = bucketOf(key);
    if (used[bucket]! < entriesPerBucket) keys.push(key);
    used[bucket] = used[bucket]! + 1;
  }
  return keys;
}

async function server(program: ProgramContext): Promise<undefined> {
  const endpoint = await openEndpoint(program);
  const table = await createBuffer(endpoint, bucketCount * bucketBytes);
  const used = new Uint8Array(bucketCount);
  for (const key of keysInTable()) {
    const bucket = bucketOf(key);
    const entry = table.address + bucket * bucketBytes + used[bucket]! * 16;
    used[bucket] = used[bucket]! + 1;
    program.memory.writeUint64(entry, BigInt(key));
    program.memory.writeUint64(entry + 8, valueFor(key));
  }
  const cq = await createCq(endpoint.context, 1);
  const cap = { maxSendWr: 1, maxRecvWr: 1, maxSendSge: 1, maxRecvSge: 1 };
  const qps = await createRcQps(endpoint, 1, { send: cq, receive: cq }, cap);
  await connectRc(endpoint, qps, 'table', { address: table.address, rkey: table.region.rkey });
  await program.exchange.take('done');
}

interface Lookups {
  readonly found: number;
  readonly wrong: number;
  readonly lookupsPerSecond: number;
}

async function client(program: ProgramContext): Promise<Lookups & { [name: string]: number }> {
  const endpoint = await openEndpoint(program);
  const { cpu, memory, exchange } = program;
  const lines = await createBuffer(endpoint, depth * bucketBytes);
  const cq = await createCq(endpoint.context, depth);
  const cap = { maxSendWr: depth, maxRecvWr: 1, maxSendSge: 1, maxRecvSge: 1 };
  const qps = await createRcQps(endpoint, 1, { send: cq, receive: cq }, cap);
  const { note } = await connectRc(endpoint, qps, 'table');
  const table = note as { readonly address: number; readonly rkey: number };
  const keys = keysInTable();

  const keyOfSlot = new Array<number>(depth).fill(0);
  const lookUp = (key: number, slot: number): void => {
    keyOfSlot[slot] = key;
    postSend(qps[0]!, {
      wrId: slot,
      sgList: [{ addr: lines.address + slot * bucketBytes, length: bucketBytes, lkey: lines.region.lkey }],
      numSge: 1,
      opcode: IBV_WR_RDMA_READ,
      sendFlags: IBV_SEND_SIGNALED,
      wr: { rdma: { remoteAddr: table.address + bucketOf(key) * bucketBytes, rkey: table.rkey } },
    });
  };
  const isRight = (slot: number): boolean => {
    const line = new BigUint64Array(memory.read(lines.address + slot * bucketBytes, bucketBytes).buffer);
    const key = BigInt(keyOfSlot[slot]!);
    for (let at = 0; at < line.length; at += 2)
      if (line[at] === key) return line[at + 1] === valueFor(Number(key));
    return false;
  };

  const wc = Array.from({ length: depth }, () => new IbvWc());
  const startPs = cpu.localPs;
  let [next, found, wrong] = [0, 0, 0];
  for (; next < Math.min(depth, keys.length); next++) lookUp(keys[next]!, next);
  while (found + wrong < keys.length) {
    const count = await spinCq(cq, wc.length, wc);
    for (const { wrId, status } of wc.slice(0, count)) {
      if (status === IBV_WC_SUCCESS && isRight(wrId)) found++;
      else wrong++;
      if (next < keys.length) lookUp(keys[next++]!, wrId);
    }
  }
  const lookupsPerSecond = (found / (cpu.localPs - startPs)) * 1e12;
  await exchange.put('done', true);
  return { found, wrong, lookupsPerSecond };
}

export async function main(): Promise<Lookups> {
  await using machine = await Machine.create();
  await machine.load({ node: 0, run: server });
  await machine.load({ node: 1, run: client });
  await machine.run();
  const [, lookups] = await machine.results<[undefined, Lookups]>();
  return lookups;
}

if (import.meta.main) {
  const { found, wrong, lookupsPerSecond } = await main();
  console.log(
    `${found} keys found, ${wrong} wrong: ${(lookupsPerSecond / 1e6).toFixed(2)} million lookups per second`,
  );
}
