/** Programs that use message channels in every way that can fail. */

import { openMessageChannel } from '../../experiments/workloads/message-pingpong.ts';
import { barrier, openEndpoint } from '../../experiments/workloads/rc-endpoint.ts';
import type { JsonValue, ProgramContext } from '../../machine/program.ts';
import { IBV_QP_STATE, IBV_QPS_ERR, modifyQp } from '../../userlib/index.ts';
import { MessageChannel, type MessagingConfig } from '../../userlib/messaging/index.ts';
import { areEqual, patternOf } from './requests.ts';

interface MessagesArgs {
  readonly config?: Partial<MessagingConfig>;
  readonly waiting?: 'poll' | 'event';
  readonly lengths?: readonly number[];
}

/** A channel between the two programs, and memory without any page alignment. */
export class MessageSide {
  readonly program: ProgramContext;
  readonly channel: MessageChannel;

  private constructor(program: ProgramContext, channel: MessageChannel) {
    this.program = program;
    this.channel = channel;
  }

  static async open(program: ProgramContext): Promise<MessageSide> {
    const { config = {}, waiting = 'poll' } = (program.args ?? {}) as MessagesArgs;
    const channel = await openMessageChannel(program, 'messages', config, waiting);
    return new MessageSide(program, channel);
  }

  /** Memory for `lengthBytes`, not aligned to anything. */
  buffer(lengthBytes: number): number {
    return this.program.memory.map(lengthBytes + 8192) + 4093;
  }

  filled(seed: number, lengthBytes: number): number {
    const address = this.buffer(lengthBytes);
    this.program.memory.write(address, patternOf(seed, lengthBytes));
    return address;
  }

  holds(address: number, seed: number, lengthBytes: number): boolean {
    return areEqual(this.program.memory.read(address, lengthBytes), patternOf(seed, lengthBytes));
  }

  async leave(): Promise<void> {
    await this.channel.flush();
    await barrier(this.program, 'leave');
    await this.channel.close();
  }
}

/** Error of a failing call: its name and code. */
export async function failureOf(call: () => Promise<unknown>): Promise<string> {
  try {
    await call();
    return 'none';
  } catch (error) {
    const { name, code } = error as { readonly name: string; readonly code?: string };
    return `${name} ${code ?? ''}`.trim();
  }
}

/** Creates channels without a chosen cut-off, or with one above the buffers' size. */
export async function unchosen(program: ProgramContext): Promise<JsonValue> {
  const { pd } = await openEndpoint(program);
  const { messaging } = program.configuration;
  const told: string[] = [];
  for (const cutoffBytes of [0, messaging.eagerBytes + 1])
    told.push(await failureOf(() => MessageChannel.create(pd, { ...messaging, cutoffBytes })));
  return told;
}

/** Sends messages of the requested lengths, one after another. */
export async function sender(program: ProgramContext<MessagesArgs>): Promise<JsonValue> {
  const side = await MessageSide.open(program);
  const { lengths = [] } = program.args;
  for (const [seed, length] of lengths.entries()) await side.channel.send(side.filled(seed, length), length);
  const { eager, rendezvous } = side.channel.counts;
  await side.leave();
  return { eager, rendezvous };
}

/** Receives them into buffers of exactly their length. @returns for each whether it is right */
async function receiveAll(side: MessageSide, program: ProgramContext<MessagesArgs>): Promise<boolean[]> {
  const { lengths = [] } = program.args;
  const right: boolean[] = [];
  for (const [seed, length] of lengths.entries()) {
    const buffer = side.buffer(length);
    right.push((await side.channel.receive(buffer, length)) === length && side.holds(buffer, seed, length));
  }
  await side.leave();
  return right;
}

/** Receives them as they arrive. */
export async function receiver(program: ProgramContext<MessagesArgs>): Promise<JsonValue> {
  return receiveAll(await MessageSide.open(program), program);
}

/** Receives only after a long sleep: the sender must wait for credits, and nothing may be lost. */
export async function lateReceiver(program: ProgramContext<MessagesArgs>): Promise<JsonValue> {
  const side = await MessageSide.open(program);
  await program.cpu.sleep(2e9);
  return receiveAll(side, program);
}

/** Both sides start several sends before they receive anything. */
export async function exchanger(program: ProgramContext<MessagesArgs>): Promise<JsonValue> {
  const side = await MessageSide.open(program);
  const { lengths = [] } = program.args;
  const sends = [];
  const receives = [];
  for (const length of lengths) receives.push(await side.channel.startReceive(side.buffer(length), length));
  for (const [seed, length] of lengths.entries())
    sends.push(await side.channel.startSend(side.filled(seed, length), length));
  const right: boolean[] = [];
  for (const [seed, request] of receives.entries()) {
    const length = await side.channel.wait(request);
    right.push(side.holds(request.address, seed, length) && length === lengths[seed]);
  }
  for (const request of sends) await side.channel.wait(request);
  await side.leave();
  return right;
}

/** Too little room for an eager message and for a rendezvous; the next messages still arrive. */
export async function narrowReceiver(program: ProgramContext<MessagesArgs>): Promise<JsonValue> {
  const side = await MessageSide.open(program);
  const { lengths = [] } = program.args;
  const told: JsonValue[] = [];
  for (const [seed, length] of lengths.entries()) {
    const buffer = side.buffer(length);
    const room = seed % 2 === 0 ? length - 1 : length;
    const failure = await failureOf(() => side.channel.receive(buffer, room));
    const isUntouched = side.program.memory.read(buffer, length).every((byte) => byte === 0);
    told.push(failure === 'none' ? side.holds(buffer, seed, length) : `${failure}, ${isUntouched}`);
  }
  await side.leave();
  return told;
}

/** An address that was mapped earlier. */
function unmapped({ memory }: ProgramContext): number {
  const address = memory.map(4096);
  memory.unmap(address, 4096);
  return address;
}

/** Tries to send from unmapped memory, more often than there are buffers, before each message of the requested lengths. */
export async function carelessSender(program: ProgramContext<MessagesArgs>): Promise<JsonValue> {
  const side = await MessageSide.open(program);
  const { lengths = [] } = program.args;
  const nowhere = unmapped(program);
  const told = new Set<string>();
  for (const [seed, length] of lengths.entries()) {
    for (let times = 0; times < 40; times++)
      told.add(await failureOf(() => side.channel.send(nowhere, length)));
    await side.channel.send(side.filled(seed, length), length);
  }
  await side.leave();
  return [...told];
}

/** Receives every second message of the requested lengths into unmapped memory. */
export async function carelessReceiver(program: ProgramContext<MessagesArgs>): Promise<JsonValue> {
  const side = await MessageSide.open(program);
  const { lengths = [] } = program.args;
  const nowhere = unmapped(program);
  const told: JsonValue[] = [];
  for (const [seed, length] of lengths.entries()) {
    const buffer = seed % 2 === 0 ? nowhere : side.buffer(length);
    const failure = await failureOf(() => side.channel.receive(buffer, length));
    told.push(failure === 'none' ? side.holds(buffer, seed, length) : failure);
  }
  await side.leave();
  return told;
}

/** The connection fails during a receive and during a send. */
export async function abandoned(program: ProgramContext): Promise<JsonValue> {
  const side = await MessageSide.open(program);
  await barrier(program, 'open');
  const { qp } = side.channel;
  if (program.node === 1) {
    await modifyQp(qp, { qpState: IBV_QPS_ERR }, IBV_QP_STATE);
    await barrier(program, 'told');
    return null;
  }
  const buffer = side.filled(1, 100_000);
  const send = await failureOf(() => side.channel.send(buffer, 100_000));
  const receive = await failureOf(() => side.channel.receive(buffer, 100_000));
  await barrier(program, 'told');
  await side.channel.close();
  return { send, receive };
}

/** Repeatedly sends more than one buffer of a size by rendezvous, from fewer or more buffers than the cache keeps. */
export async function cachedSender(program: ProgramContext<MessagesArgs>): Promise<JsonValue> {
  const side = await MessageSide.open(program);
  const { lengths = [] } = program.args;
  const buffers = lengths.map((length, seed) => side.filled(seed, length));
  for (let round = 0; round < 3; round++)
    for (const [seed, length] of lengths.entries()) await side.channel.send(buffers[seed]!, length);
  const told = { ...side.channel.cache.counts, pinnedBytes: program.process.memory.space.pinnedBytes };
  await side.leave();
  return { ...told, pinnedAfterwards: program.process.memory.space.pinnedBytes };
}

export async function cachedReceiver(program: ProgramContext<MessagesArgs>): Promise<JsonValue> {
  const side = await MessageSide.open(program);
  const { lengths = [] } = program.args;
  let wrong = 0;
  for (let round = 0; round < 3; round++)
    for (const [seed, length] of lengths.entries()) {
      const buffer = side.buffer(length);
      await side.channel.receive(buffer, length);
      if (!side.holds(buffer, seed, length)) wrong++;
    }
  await side.leave();
  return wrong;
}
