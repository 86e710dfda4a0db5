/** Programs on kernel sockets: streams in both directions, and all their failures. */
import { createHash } from 'node:crypto';
import { barrier } from '../../experiments/workloads/rc-endpoint.ts';
import { addressOf } from '../../machine/node/nic-software.ts';
import type { JsonValue, ProgramContext } from '../../machine/program.ts';

/** Parameters of a stream. */
export interface StreamArgs {
  readonly bytes: number;
  readonly port: number;
  /** Bytes of one call. */
  readonly callBytes: number;
  /** Node of the sending program; the peer receives. */
  readonly from: number;
  /** The receiver waits this long before it reads. */
  readonly pausePs?: number;
}

/** The bytes of a stream: different for every port. */
export function bytesOfStream({ bytes, port }: Pick<StreamArgs, 'bytes' | 'port'>): Uint8Array {
  const all = new Uint8Array(bytes);
  let state = port;
  for (let at = 0; at < bytes; at++) {
    state = (state * 1_103_515_245 + 12_345) >>> 0;
    all[at] = state >>> 16;
  }
  return all;
}

export const sha256Of = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** One side of a stream. @returns the hash of the sent or received bytes, and the time */
export async function stream(program: ProgramContext<StreamArgs>): Promise<JsonValue> {
  const args = program.args;
  const hash =
    program.node === args.from ? await sendStream(program, args) : await receiveStream(program, args);
  return { hash, endedPs: program.cpu.localPs };
}

async function sendStream(program: ProgramContext, args: StreamArgs): Promise<string> {
  const { cpu, memory } = program;
  const sockets = program.sockets!;
  const bytes = bytesOfStream(args);
  const address = memory.map(Math.max(1, args.bytes));
  memory.write(address, bytes);
  const fd = await sockets.socket(cpu);
  await barrier(program, `listening ${args.port}`);
  await sockets.connect(cpu, fd, { address: addressOf(program.peers[0]!), port: args.port });
  for (let done = 0; done < args.bytes; )
    done += await sockets.send(cpu, fd, address + done, Math.min(args.callBytes, args.bytes - done));
  await sockets.close(cpu, fd);
  return sha256Of(bytes);
}

async function receiveStream(program: ProgramContext, args: StreamArgs): Promise<string> {
  const { cpu, memory } = program;
  const sockets = program.sockets!;
  const fd = await accepted(program, args.port);
  const address = memory.map(args.callBytes);
  const hash = createHash('sha256');
  if (args.pausePs !== undefined) await cpu.sleep(args.pausePs);
  for (;;) {
    const count = await sockets.recv(cpu, fd, address, args.callBytes);
    if (count === 0) break;
    hash.update(memory.read(address, count));
  }
  await sockets.close(cpu, fd);
  return hash.digest('hex');
}

async function accepted(program: ProgramContext, port: number): Promise<number> {
  const { cpu } = program;
  const sockets = program.sockets!;
  const listening = await sockets.socket(cpu);
  await sockets.bind(cpu, listening, { address: 0, port });
  await sockets.listen(cpu, listening, 4);
  await barrier(program, `listening ${port}`);
  const fd = await sockets.accept(cpu, listening);
  await sockets.close(cpu, listening);
  return fd;
}

async function connected(program: ProgramContext, port: number): Promise<number> {
  const fd = await program.sockets!.socket(program.cpu);
  await barrier(program, `listening ${port}`);
  await program.sockets!.connect(program.cpu, fd, { address: addressOf(program.peers[0]!), port });
  return fd;
}

/** The errno that a call rejects with, or `none`. */
async function codeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return 'none';
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : String(error);
  }
}

/** Connects to a port without a listener, then to an absent host. */
export async function refused({ sockets, cpu }: ProgramContext): Promise<JsonValue> {
  const fd = await sockets!.socket(cpu);
  const nobody = await codeOf(sockets!.connect(cpu, fd, { address: addressOf(1), port: 9 }));
  const nowhere = await codeOf(sockets!.connect(cpu, fd, { address: addressOf(77), port: 9 }));
  await sockets!.close(cpu, fd);
  return { nobody, nowhere };
}

const resetPort = 700;
const lump = 4096;

/** Sends to a peer that closes without having read: the next calls report it. */
export async function resetClient(program: ProgramContext): Promise<JsonValue> {
  const { cpu, memory } = program;
  const sockets = program.sockets!;
  const fd = await connected(program, resetPort);
  const address = memory.map(lump);
  await sockets.send(cpu, fd, address, lump);
  await barrier(program, 'closed');
  await cpu.sleep(1_000_000_000);
  const read = await codeOf(sockets.recv(cpu, fd, address, lump));
  const written = await codeOf(sockets.send(cpu, fd, address, lump));
  return { read, written };
}

export async function resetServer(program: ProgramContext): Promise<JsonValue> {
  const { cpu } = program;
  const fd = await accepted(program, resetPort);
  await cpu.sleep(1_000_000_000);
  await program.sockets!.close(cpu, fd);
  await barrier(program, 'closed');
  return null;
}

const freedPort = 701;

/** Overwrites, unmaps and remaps the buffer of a call that has returned: the sent bytes are those that it held. */
export async function freesAfterSend(program: ProgramContext): Promise<JsonValue> {
  const { cpu, memory } = program;
  const sockets = program.sockets!;
  const bytes = bytesOfStream({ bytes: 16 * lump, port: freedPort });
  const address = memory.map(bytes.length);
  memory.write(address, bytes);
  const fd = await connected(program, freedPort);
  await sockets.send(cpu, fd, address, bytes.length);
  memory.write(address, new Uint8Array(bytes.length).fill(0xee));
  memory.unmap(address, bytes.length);
  const again = memory.map(bytes.length);
  memory.write(again, new Uint8Array(bytes.length).fill(0xdd));
  const unmapped = await codeOf(sockets.send(cpu, fd, 0x10_0000, 100));
  await sockets.close(cpu, fd);
  return { hash: sha256Of(bytes), unmapped };
}

/** Reads into unmapped memory: the bytes remain, and the next call gets them. */
export async function readsNowhere(program: ProgramContext): Promise<JsonValue> {
  const { cpu, memory } = program;
  const sockets = program.sockets!;
  const fd = await accepted(program, freedPort);
  const nowhere = memory.map(lump);
  memory.unmap(nowhere, lump);
  const unmapped = await codeOf(sockets.recv(cpu, fd, nowhere, lump));
  const address = memory.map(lump);
  const hash = createHash('sha256');
  for (;;) {
    const count = await sockets.recv(cpu, fd, address, lump);
    if (count === 0) break;
    hash.update(memory.read(address, count));
  }
  await sockets.close(cpu, fd);
  return { hash: hash.digest('hex'), unmapped };
}

/** Works for a fixed number of cycles, a microsecond at a time. @returns the total duration, and the longest microsecond */
export async function works({ cpu, args }: ProgramContext): Promise<JsonValue> {
  const { rounds } = args as { readonly rounds: number };
  const startPs = cpu.localPs;
  let longestPs = 0;
  for (let round = 0; round < rounds; round++) {
    const roundPs = cpu.localPs;
    cpu.charge('application', 2_500);
    await cpu.settle();
    longestPs = Math.max(longestPs, cpu.localPs - roundPs);
  }
  return { tookPs: cpu.localPs - startPs, longestPs };
}
