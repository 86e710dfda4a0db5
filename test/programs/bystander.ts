/**
 * A separate pair of processes that move data before, during and after all other activity on their hosts, and check every byte
 * of it: by WRITE and READ back, by FETCH_ADD, and by SEND, round after round.
 *
 * The program under test runs on the client's host, by which it finds the client's {@link Progress}: it checks that rounds
 * continued during its harmful actions, and then stops the pair.
 */
import type { Host } from '../../host/index.ts';
import type { ProgramContext } from '../../machine/program.ts';
import { IBV_WR_SEND_WITH_IMM, type IbvQp, postRecv, postSend } from '../../userlib/index.ts';
import { statusesOf, take } from './outcomes.ts';
import {
  areEqual,
  fetchAddOf,
  patternOf,
  readOf,
  receiveOf,
  remoteAt,
  segment,
  sendOf,
  writeOf,
} from './requests.ts';
import { type Pair, Side } from './side.ts';

export interface Progress {
  rounds: number;
  isStopping: boolean;
}

export interface BystanderResult {
  readonly rounds: number;
  readonly mistakes: readonly string[];
}

const progressOfHost = new WeakMap<Host, Progress>();
const roundBytes = 200;
const pausePs = 20e6;
const waitPs = 5e6;
const goOn = 1;
const stop = 2;
const slots = 8;

export function progressOf(host: Host): Progress {
  let progress = progressOfHost.get(host);
  if (progress === undefined) {
    progress = { rounds: 0, isStopping: false };
    progressOfHost.set(host, progress);
  }
  return progress;
}

/** Lets the bystanders of this host make `count` more rounds. */
export async function roundsMore({ host, cpu }: ProgramContext, count: number): Promise<void> {
  const progress = progressOf(host);
  const goal = progress.rounds + count;
  while (progress.rounds < goal) await cpu.sleep(waitPs);
}

export async function client(program: ProgramContext): Promise<BystanderResult> {
  const side = await Side.open(program);
  const pair = await side.pair('bystander', { bufferBytes: 8192 });
  const progress = progressOf(program.host);
  const mistakes: string[] = [];
  while (!progress.isStopping) {
    await oneRound(side, pair, progress.rounds, goOn, mistakes);
    progress.rounds++;
    await program.cpu.sleep(pausePs);
  }
  await oneRound(side, pair, progress.rounds, stop, mistakes);
  const result: BystanderResult = { rounds: progress.rounds, mistakes: mistakes.slice(0, 8) };
  await side.barrier('bystander over');
  return result;
}

/** Local: 0 pattern, 1024 data read back, 2048 counter. Remote: 0 pattern, 1024 counter, 2048 received. */
async function oneRound(
  side: Side,
  pair: Pair,
  round: number,
  mark: number,
  mistakes: string[],
): Promise<void> {
  const { buffer, qp } = pair;
  const pattern = patternOf(round, roundBytes);
  side.write(buffer, pattern);
  post(qp, [
    writeOf([segment(buffer, 0, roundBytes)], remoteAt(pair, 0)),
    readOf([segment(buffer, 1024, roundBytes)], remoteAt(pair, 0)),
    fetchAddOf(segment(buffer, 2048, 8), remoteAt(pair, 1024), 1n),
    sendOf([segment(buffer, 0, roundBytes)], { opcode: IBV_WR_SEND_WITH_IMM, immData: (round << 2) | mark }),
  ]);
  const statuses = statusesOf(await take(pair.sendCq, 4));
  if (statuses.some((status) => status !== 'SUCCESS')) mistakes.push(`round ${round}: ${statuses.join()}`);
  if (!areEqual(side.read(buffer, roundBytes, 1024), pattern))
    mistakes.push(`round ${round}: other bytes read`);
  const counter = side.program.memory.readUint64(buffer.address + 2048);
  if (counter !== BigInt(round)) mistakes.push(`round ${round}: counter ${counter}`);
}

export async function server(program: ProgramContext): Promise<BystanderResult> {
  const side = await Side.open(program);
  const pair = await side.pair('bystander', {
    bufferBytes: 8192,
    beforeReady: (early) => {
      for (let slot = 0; slot < slots; slot++) postSlot(early, slot);
    },
  });
  const mistakes: string[] = [];
  let rounds = 0;
  for (let mark = goOn; mark === goOn; rounds++) {
    const [received] = await take(pair.recvCq, 1);
    mark = received!.immData & 3;
    const slot = rounds % slots;
    const isRight =
      received!.status === 'SUCCESS' &&
      received!.wrId === slot &&
      received!.immData >>> 2 === rounds &&
      areEqual(side.read(pair.buffer, roundBytes, slotOffset(slot)), patternOf(rounds, roundBytes));
    if (!isRight) mistakes.push(`message ${rounds}: ${JSON.stringify(received)}`);
    postSlot(pair, slot);
  }
  const result: BystanderResult = { rounds: rounds - 1, mistakes: mistakes.slice(0, 8) };
  await side.barrier('bystander over');
  return result;
}

const slotOffset = (slot: number): number => 2048 + slot * 256;

function postSlot({ qp, buffer }: Pair, slot: number): void {
  postRecv(qp, receiveOf([segment(buffer, slotOffset(slot), roundBytes)], slot));
}

function post(qp: IbvQp, requests: readonly Parameters<typeof postSend>[1][]): void {
  for (const request of requests) postSend(qp, request);
}
