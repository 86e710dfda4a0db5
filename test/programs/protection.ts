/**
 * Requests that memory protection refuses, one after another, each on its own QP: the requester (host 0) provokes, both sides
 * report the results. Meanwhile a companion QP of the same process and PD, and a bystander process, move data; both must not be
 * affected.
 */

import { allAccess } from '../../experiments/workloads/rc-states.ts';
import type { JsonValue, ProgramContext } from '../../machine/program.ts';
import {
  allocPd,
  IBV_ACCESS_LOCAL_WRITE,
  IBV_ACCESS_REMOTE_ATOMIC,
  IBV_ACCESS_REMOTE_READ,
  IBV_ACCESS_REMOTE_WRITE,
  IBV_SEND_FENCE,
  IBV_SEND_SIGNALED,
  type IbvSendWr,
  postRecv,
  postSend,
} from '../../userlib/index.ts';
import { progressOf, roundsMore } from './bystander.ts';
import { companionBegins } from './companion.ts';
import { statusesOf, take, takeAll } from './outcomes.ts';
import { digestOf, fetchAddOf, patternOf, readOf, receiveOf, segment, sendOf, writeOf } from './requests.ts';
import { type Area, type PairOptions, Side } from './side.ts';

/** Memory provided by each side. */
interface Ground {
  readonly plain: Area;
  /** Area in another PD. */
  readonly foreign: Area;
  /** Only local reading is allowed. */
  readonly readOnly: Area;
  /** Local writing, but no right for the peer. */
  readonly localOnly: Area;
}

interface Place {
  readonly address: number;
  readonly rkey: number;
}
type Places = Readonly<Record<keyof Ground, Place>>;

interface Case {
  /** Rights of the responder's QP. */
  readonly qpAccess?: number;
  /** Receives that the responder posts. */
  receive?(own: Ground): ReturnType<typeof segment>[];
  provoke(own: Ground, peer: Places): IbvSendWr;
}

const areaBytes = 4096;

const at = ({ address, rkey }: Place, offset: number): Place => ({ address: address + offset, rkey });
const withKey = ({ address }: Place, rkey: number): Place => ({ address, rkey });
const source = (own: Ground, length = 64) => [segment(own.plain, 0, length)];

/** Rights that each remote operation requires. */
const remoteOperations = {
  WRITE: (own: Ground, to: Place) => writeOf(source(own), to),
  READ: (own: Ground, from: Place) => readOf(source(own), from),
  FETCH_ADD: (own: Ground, to: Place) => fetchAddOf(segment(own.plain, 0, 8), to, 1n),
} as const;

const rightOf = {
  WRITE: IBV_ACCESS_REMOTE_WRITE,
  READ: IBV_ACCESS_REMOTE_READ,
  FETCH_ADD: IBV_ACCESS_REMOTE_ATOMIC,
} as const;

function remoteCases(): Record<string, Case> {
  const cases: Record<string, Case> = {};
  for (const name of ['WRITE', 'READ', 'FETCH_ADD'] as const) {
    const request = remoteOperations[name];
    cases[`${name}, wrong rkey`] = {
      provoke: (own, { plain }) => request(own, withKey(plain, plain.rkey ^ 1)),
    };
    cases[`${name}, rkey of nothing`] = {
      provoke: (own, { plain }) => request(own, withKey(plain, 0x7654_3200)),
    };
    // 64 bytes from 40 before the end, or 8 that begin at the end.
    const past = areaBytes - (name === 'FETCH_ADD' ? 0 : 40);
    cases[`${name}, past the region`] = { provoke: (own, { plain }) => request(own, at(plain, past)) };
    cases[`${name}, before the region`] = { provoke: (own, { plain }) => request(own, at(plain, -8)) };
    cases[`${name}, rkey of another PD`] = { provoke: (own, { foreign }) => request(own, foreign) };
    cases[`${name}, region without the right`] = { provoke: (own, { localOnly }) => request(own, localOnly) };
    cases[`${name}, QP without the right`] = {
      qpAccess: allAccess & ~rightOf[name],
      provoke: (own, { plain }) => request(own, plain),
    };
  }
  return cases;
}

const receives = (list: (own: Ground) => ReturnType<typeof segment>[], sent = 64): Case => ({
  receive: list,
  provoke: (own) => sendOf(source(own, sent)),
});

export const cases: Readonly<Record<string, Case>> = {
  'SEND, wrong lkey': { provoke: ({ plain }) => sendOf([segment(plain, 0, 64, plain.mr.lkey ^ 1)]) },
  'SEND, lkey of nothing': { provoke: ({ plain }) => sendOf([segment(plain, 0, 64, 0x7654_3200)]) },
  'SEND, lkey of another PD': { provoke: ({ foreign }) => sendOf([segment(foreign, 0, 64)]) },
  'SEND, length past the region': { provoke: ({ plain }) => sendOf([segment(plain, areaBytes - 40, 41)]) },
  'SEND, second segment past the region': {
    provoke: ({ plain }) => sendOf([segment(plain, 0, 64), segment(plain, areaBytes, 1)]),
  },
  'WRITE, wrong lkey': {
    provoke: ({ plain }, peer) => writeOf([segment(plain, 0, 64, plain.mr.lkey ^ 1)], peer.plain),
  },
  'READ into memory without local write': {
    provoke: ({ readOnly }, { plain }) => readOf([segment(readOnly, 0, 64)], plain),
  },
  'READ into memory of another PD': {
    provoke: ({ foreign }, { plain }) => readOf([segment(foreign, 0, 64)], plain),
  },
  'FETCH_ADD into memory without local write': {
    provoke: ({ readOnly }, { plain }) => fetchAddOf(segment(readOnly, 0, 8), plain, 0n),
  },
  ...remoteCases(),
  'FETCH_ADD, unaligned': { provoke: (own, { plain }) => remoteOperations.FETCH_ADD(own, at(plain, 4)) },
  'receive, wrong lkey': receives(({ plain }) => [segment(plain, 0, 64, plain.mr.lkey ^ 1)]),
  'receive, past the region': receives(({ plain }) => [segment(plain, areaBytes - 40, 64)]),
  'receive, another PD': receives(({ foreign }) => [segment(foreign, 0, 64)]),
  'receive, without local write': receives(({ readOnly }) => [segment(readOnly, 0, 64)]),
  'receive, shorter than the message': receives(({ plain }) => [
    segment(plain, 0, 32),
    segment(plain, 64, 31),
  ]),
  'receive, shorter than a message of many packets': receives(({ plain }) => [segment(plain, 0, 2047)], 4096),
};

async function groundOf(side: Side): Promise<Ground> {
  const ground = {
    plain: await side.area(areaBytes),
    foreign: await side.area(areaBytes, allAccess, await allocPd(side.context)),
    readOnly: await side.area(areaBytes, 0),
    localOnly: await side.area(areaBytes, IBV_ACCESS_LOCAL_WRITE),
  };
  Object.values(ground).forEach((area, index) => {
    side.write(area, patternOf(side.program.node * 10 + index, areaBytes));
  });
  return ground;
}

const digestsOf = (side: Side, ground: Ground): string =>
  Object.values(ground)
    .map((area: Area) => digestOf(side.read(area, areaBytes)).toString(16))
    .join();

const placesOf = (ground: Ground): Record<string, { address: number; rkey: number }> =>
  Object.fromEntries(
    Object.entries(ground).map(([name, { address, mr }]: [string, Area]) => [
      name,
      { address, rkey: mr.rkey },
    ]),
  );

export async function requester(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  const ground = await groundOf(side);
  await side.tell('places', null);
  const places = await side.hear<Places>('places');
  const companion = await side.pair('companion');
  await roundsMore(program, 2);
  const results: Record<string, JsonValue> = {};
  for (const [name, { provoke }] of Object.entries(cases)) {
    const before = digestsOf(side, ground);
    const pair = await side.pair(name);
    const { rounds } = progressOf(program.host);
    const seed = Object.keys(results).length;
    const check = companionBegins(side, companion, seed);
    postSend(pair.qp, { ...provoke(ground, places), wrId: 11 });
    // After the bad one: never carried out.
    const fenced = { wrId: 12, sendFlags: IBV_SEND_SIGNALED | IBV_SEND_FENCE };
    postSend(pair.qp, writeOf(source(ground), at(places.plain, 128), fenced));
    const companionIsRight = await check();
    const sends = await take(pair.sendCq, 2);
    await side.barrier(`${name} is over`);
    results[name] = {
      sends: statusesOf(sends),
      ids: sends.map(({ wrId }) => wrId),
      surplus: statusesOf(await takeAll(pair.sendCq, 5)),
      state: await side.stateOf(pair),
      events: await side.events(),
      isUntouched: digestsOf(side, ground) === before,
      companionIsRight,
      bystanderWentOn: progressOf(program.host).rounds > rounds,
    };
    await side.closePair(pair);
  }
  await roundsMore(program, 2);
  progressOf(program.host).isStopping = true;
  return results;
}

export async function responder(program: ProgramContext): Promise<JsonValue> {
  const side = await Side.open(program);
  const ground = await groundOf(side);
  await side.hear('places');
  await side.tell('places', placesOf(ground));
  await side.pair('companion');
  const results: Record<string, JsonValue> = {};
  for (const [name, { qpAccess, receive }] of Object.entries(cases)) {
    const before = digestsOf(side, ground);
    const options: PairOptions = {
      ...(qpAccess === undefined ? {} : { qpAccess }),
      beforeReady: ({ qp }) => {
        const list = receive?.(ground) ?? [segment(ground.plain, 0, 64)];
        postRecv(qp, receiveOf(list, 21));
        postRecv(qp, receiveOf(list, 22));
      },
    };
    const pair = await side.pair(name, options);
    await side.barrier(`${name} is over`);
    const receives = await takeAll(pair.recvCq, 5);
    results[name] = {
      receives: statusesOf(receives),
      state: await side.stateOf(pair),
      events: await side.events(),
      // A message that is too long fills its buffer before the error is detected.
      isUntouched: digestsOf(side, ground) === before || name.includes('shorter'),
    };
    await side.closePair(pair);
  }
  return results;
}
