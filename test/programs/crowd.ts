/**
 * A crowd: many programs on both hosts, each with its own QPs, which post small requests one doorbell at a time and poll
 * meanwhile, so that doorbells arrive while the device serves the same QPs.
 */
import type { JsonValue, ProgramContext } from '../../machine/program.ts';
import {
  createCq,
  IBV_SEND_SIGNALED,
  type IbvCq,
  IbvWc,
  pollSettled,
  postRecv,
  postSend,
  wcStatusStr,
} from '../../userlib/index.ts';
import { readOf, receiveOf, remoteAt, segment, sendOf, writeOf } from './requests.ts';
import { type Pair, Side } from './side.ts';

export interface CrowdArgs {
  /** The crowd of this program and its partner on the second host. */
  readonly label: string;
  readonly qps: number;
  /** Requests of each QP, and the limit of outstanding ones. */
  readonly requests: number;
  readonly window: number;
  readonly bytes: number;
  /** Requests posted in rotation. */
  readonly verbs: readonly ('write' | 'read' | 'send')[];
  /** Nodes that post. */
  readonly nodes: readonly number[];
  readonly mtu?: number;
}

/** One QP with its posted and completed requests. */
interface Member {
  readonly pair: Pair;
  posted: number;
  done: number;
  received: number;
}

export async function member(program: ProgramContext<CrowdArgs>): Promise<JsonValue> {
  const args = program.args;
  const { label, qps, requests, window, bytes, verbs, nodes } = args;
  const side = await Side.open(program);
  const cqEntries = Math.max(64, qps * window);
  const cqs = {
    sendCq: await createCq(side.context, cqEntries),
    recvCq: await createCq(side.context, cqEntries),
  };
  const receives = verbs.includes('send') ? 2 * window : 0;
  const members: Member[] = [];
  for (let index = 0; index < qps; index++) {
    const pair = await side.pair(`${label} ${index}`, {
      ...cqs,
      cap: { maxSendWr: window, maxRecvWr: Math.max(1, receives) },
      bufferBytes: 4 * Math.max(bytes, 64),
      timeoutCode: 12,
      ...(args.mtu === undefined ? {} : { mtu: args.mtu as 1 }),
      beforeReady: (early) => {
        for (let slot = 0; slot < receives; slot++) postReceive(early, index, bytes);
      },
    });
    members.push({ pair, posted: 0, done: 0, received: 0 });
  }
  await side.barrier(`${label} begins`);
  const wrong: string[] = [];
  const posts = nodes.includes(program.node) ? requests : 0;
  const arriving = nodes.includes(1 - program.node) ? requests : 0;
  const receivesDue = Array.from({ length: arriving }, (_, request) => verbs[request % verbs.length]).filter(
    (verb) => verb === 'send',
  ).length;
  const isDone = ({ done, received }: Member): boolean => done === posts && received === receivesDue;
  const wcs = Array.from({ length: 16 }, () => new IbvWc());
  const takeFrom = (cq: IbvCq, kind: 'done' | 'received'): void => {
    const count = pollSettled(cq, wcs.length, wcs);
    for (const { wrId, status } of wcs.slice(0, count)) {
      if (status !== 0) wrong.push(`QP ${wrId}: ${wcStatusStr(status)}`);
      members[wrId]![kind]++;
      if (kind === 'received' && status === 0) postReceive(members[wrId]!.pair, wrId, bytes);
    }
  };
  while (!members.every(isDone) && wrong.length === 0) {
    for (const [index, each] of members.entries()) {
      if (each.posted === posts || each.posted - each.done === window) continue;
      const verb = verbs[each.posted % verbs.length]!;
      if (postSend(each.pair.qp, requestOf(verb, each.pair, index, bytes)) === 0) each.posted++;
    }
    await program.cpu.settle();
    takeFrom(cqs.sendCq, 'done');
    takeFrom(cqs.recvCq, 'received');
  }
  await side.barrier(`${label} over`);
  return { wrong: wrong.slice(0, 5), done: members.map(({ done }) => done) };
}

function postReceive({ qp, buffer }: Pair, index: number, bytes: number): void {
  postRecv(qp, receiveOf([segment(buffer, 2 * bytes, bytes)], index));
}

function requestOf(verb: 'write' | 'read' | 'send', pair: Pair, index: number, bytes: number) {
  const more = { wrId: index, sendFlags: IBV_SEND_SIGNALED };
  const own = [segment(pair.buffer, 0, bytes)];
  if (verb === 'write') return writeOf(own, remoteAt(pair, bytes), more);
  if (verb === 'read') return readOf([segment(pair.buffer, 3 * bytes, bytes)], remoteAt(pair, 0), more);
  return sendOf(own, more);
}
