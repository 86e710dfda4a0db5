/**
 * Checks stories from files: every field has its type and range, every number that refers to an object refers to one of the story, and a scene
 * has the arguments that it accepts. The compiler compares these tables with the format (story.ts).
 */
import type { FaultEntry } from '../machine/faults/index.ts';
import { partitions } from '../machine/index.ts';
import type { ParameterValues } from '../machine/profile/index.ts';
import {
  type Format,
  fieldsOf,
  flag,
  list,
  object,
  oneOf,
  orNothing,
  pair,
  steps,
  value,
  whole,
} from './format.ts';
import { Draws, type ScenePlan, sceneOf } from './scenes/index.ts';
import {
  climates,
  flaws,
  type ProgramPlan,
  peerOfQp,
  type QpPlan,
  type SendPlan,
  type Step,
  type Story,
  sendsOf,
} from './story.ts';
import { verbs } from './verbs.ts';

const count = whole(0, 2 ** 50);
const place = whole(0, 1_000_000);
const on = oneOf(true);
const sges = list(object({ area: place, offset: count, length: count }));
const flaw = oneOf(...flaws);
const range = { offset: count, length: count };
const operand = value<string>('hexadecimal digits', (given) => /^[\da-f]{1,16}$/.test(String(given)));
const settingsOf = <T>(): Format<T> =>
  value('an object of numbers, words and flags', (given) =>
    Object.values(fieldsOf(given) ?? [null]).every((one) => /^(number|string|boolean)$/.test(typeof one)),
  );

const send: Format<SendPlan> = object(
  {
    ...{ id: count, opcode: oneOf(...verbs.keys()), sges, flaw },
    ...{ isSignalled: flag, isFenced: flag, isSolicited: flag, isInline: flag },
  },
  {
    ...{ remote: object({ area: place, offset: count }), imm: count, through: count },
    bind: object({ window: place, area: place, ...range, access: count, isZeroBased: flag }),
    ...{ compareAdd: operand, swap: operand },
  },
);
const receives = list(object({ id: count, sges, flaw }));
const told = { what: oneOf('bound', 'used', 'gone'), bind: count };

const step: Format<Step> = steps({
  post: [{ qp: place, wrs: list(send) }],
  receive: [{ qp: place, wrs: receives }],
  receiveShared: [{ srq: place, wrs: receives }],
  drain: [{ outstanding: count }],
  sleep: [{ ns: count }],
  refill: [{ area: place }],
  reregister: [{ area: place }],
  registerScratch: [{ pages: count, kept: count }],
  deregister: [{ area: place }, { isRenewed: flag }],
  peek: [{ area: place, ...range }],
  resizeCq: [{ cq: place, entries: count }],
  moderate: [{ cq: place, count, periodUs: count }],
  awaitEvent: [{ cq: place, solicitedOnly: flag }],
  modify: [{ qp: place, to: oneOf('SQD', 'RTS', 'ERR') }],
  awaitAll: [{ cq: place }],
  quiesce: [{ qp: place }],
  limitShared: [{ srq: place, limit: count }],
  destroy: [{ qp: place }],
  churn: [{ pages: count }],
  giveBack: [{ area: place, page: count, pages: count }],
  tell: [told],
  await: [told],
  deallocateWindow: [{ window: place, bind: count }],
  refillTarget: [{ area: place }],
  turn: [{ turn: count }],
  exit: [{}],
});

const qp: Format<QpPlan> = object(
  {
    ...{ transport: oneOf('RC', 'UC', 'UD'), sendCq: place, recvCq: place, srq: whole(-1, 1_000_000) },
    ...{ maxSendWr: count, maxRecvWr: count, maxSge: count, maxInline: count, isSignalAll: flag },
    ...{ mtu: whole(1, 5), timeout: whole(0, 31), retryCount: whole(0, 7), rnrRetry: whole(0, 7) },
    ...{ rnrTimer: whole(0, 31), readsOut: count, readsIn: count, psn: whole(0, 2 ** 24 - 1), access: count },
  },
  { renewal: object({ turn: count, of: place, how: oneOf('create', 'reset') }) },
);
const area = object({
  ...{ kind: oneOf('source', 'target', 'sink'), lengthBytes: whole(0, 2 ** 32), shiftBytes: whole(0, 4095) },
  ...{ access: count, isForeign: flag, atomicWords: whole(0, 4096) },
});
const program: Format<ProgramPlan> = object(
  {
    ...{ node: whole(0, 1), qpnGap: whole(0, 4096), areas: list(area), qps: list(qp) },
    ...{ cqs: list(object({ hasChannel: flag, vector: count })) },
    ...{ srqs: list(object({ maxWr: count, maxSge: count })), early: list(step), steps: list(step) },
  },
  { windows: list(object({ isType2: flag })) },
);
const again = object(
  { partition: oneOf(...partitions), shuffleSeed: orNothing(count) },
  { isUnwatched: on, isObserved: on, isPlain: on, epochPs: whole(1, 2 ** 50) },
);
const scene: Format<ScenePlan> = object(
  { name: value<string>('a name', (given) => typeof given === 'string'), args: () => {} },
  { sleepsSeconds: whole(0, 1_000_000) },
);
const link = object({ ends: pair(object({ program: place, qp: place })) }, { gidIndex: whole(0, 3) });
const turn = object({ programs: list(object({ cqs: list(place), areas: list(place), isMoved: flag })) });
const part = value<number>('from 0 to 1', (given) => typeof given === 'number' && given >= 0 && given <= 1);

const story: Format<Story> = object(
  {
    ...{ seed: count, climate: oneOf(...climates), set: settingsOf<ParameterValues>() },
    ...{ faults: list(settingsOf<FaultEntry>()), again: orNothing(again) },
    ...{ programs: list(program), links: list(link) },
  },
  { isPlain: on, stopsAfter: part, turns: list(turn), scene },
);

/** @throws ConfigurationError that names the first field that no story can have so */
export function storyFrom(given: unknown): Story {
  story('story', given);
  const checked = given as Story;
  checkPlaces(checked);
  checkScene(checked);
  return checked;
}

/** Numbers of objects are those of objects that exist. */
function checkPlaces(checked: Story): void {
  const { programs, links, turns = [] } = checked;
  for (const [at, { ends }] of links.entries())
    for (const [side, { program, qp: number }] of ends.entries()) {
      const path = `story.links.${at}.ends.${side}`;
      below(`${path}.program`, program, programs.length);
      below(`${path}.qp`, number, programs[program]!.qps.length);
    }
  for (const [at, { areas, cqs, srqs, qps, windows = [], ...rest }] of programs.entries()) {
    const [cq, ofQp] = [cqs.length, qps.length];
    const sizes = { area: areas.length, cq, sendCq: cq, recvCq: cq, srq: srqs.length, qp: ofQp, of: ofQp };
    checkNumbers(`story.programs.${at}`, { qps, ...rest }, { ...sizes, window: windows.length });
  }
  for (const { program, qp: number, plan } of sendsOf(checked)) {
    const peer = plan.remote === undefined ? undefined : peerOfQp(checked, program, number);
    if (peer !== undefined)
      below(`request ${plan.id}: remote.area`, plan.remote!.area, programs[peer.program]!.areas.length);
  }
  for (const [at, { programs: renewed }] of turns.entries()) {
    whole(programs.length, programs.length)(`story.turns.${at}.programs.length`, renewed.length);
    for (const [number, { cqs, areas }] of renewed.entries()) {
      const path = `story.turns.${at}.programs.${number}`;
      for (const one of cqs) below(`${path}.cqs`, one, programs[number]!.cqs.length);
      for (const one of areas) below(`${path}.areas`, one, programs[number]!.areas.length);
    }
  }
}

const below = (path: string, value: number, size: number): void => whole(0, size - 1)(path, value);

/** @param sizes number of objects by the name of the field that refers to one; -1 refers to none, `remote` to the peer's */
function checkNumbers(path: string, value: object, sizes: Readonly<Record<string, number>>): void {
  for (const [name, one] of Object.entries(value) as [string, unknown][]) {
    const size = sizes[name];
    if (typeof one === 'number' && size !== undefined && one >= 0) below(`${path}.${name}`, one, size);
    if (typeof one === 'object' && one !== null && name !== 'remote')
      checkNumbers(`${path}.${name}`, one, sizes);
  }
}

/**
 * Checks that a scene exists, and that its arguments have the form of those that it draws: the same fields, with lists
 * and objects in the same places.
 */
function checkScene({ scene, programs }: Story): void {
  if (scene === undefined) return whole(1, 1000)('story.programs.length', programs.length);
  const drawn = fieldsOf(sceneOf(scene).draw(new Draws(1, 'example')).args) ?? {};
  const kindOf = (of: unknown): string => (Array.isArray(of) ? 'list' : of === null ? 'null' : typeof of);
  const formats = Object.entries(drawn).map(([name, example]) => {
    const kind = kindOf(example);
    return [name, value(`a ${kind}`, (given) => kindOf(given) === kind)] as const;
  });
  object(Object.fromEntries(formats))('story.scene.args', scene.args);
}
