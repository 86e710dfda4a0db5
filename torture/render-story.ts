/** A story as a person reads it: hardware, faults, connections, and one line for each step of each program. */
import { sceneOf } from './scenes/index.ts';
import {
  type Again,
  type BindPlan,
  lengthOf,
  mtuBytes,
  type ReceivePlan,
  type SendPlan,
  type SgePlan,
  type Step,
  type Story,
} from './story.ts';
import { verbNameOf } from './verbs.ts';

/** @returns lines without line ends */
export function renderStory(story: Story): string[] {
  const {
    seed,
    climate,
    set,
    faults,
    isPlain,
    again,
    stopsAfter,
    programs,
    links,
    turns = [],
    scene,
  } = story;
  const settings = Object.entries(set).map(([path, value]) => `${path}=${value}`);
  const lines = [`story ${seed}, ${climate}: ${settings.join(' ')}`];
  for (const fault of faults)
    lines.push(
      `fault ${Object.entries(fault)
        .map(([field, value]) => `${field}=${value}`)
        .join(',')}`,
    );
  if (isPlain === true) lines.push('played without shortcuts');
  if (again !== undefined) lines.push(`again ${againText(again)}`);
  if (stopsAfter !== undefined)
    lines.push(`stopped after ${(100 * stopsAfter).toFixed(3)} % of it, once more`);
  if (scene !== undefined)
    lines.push(`scene ${scene.name}: ${sceneOf(scene).about}`, `with ${JSON.stringify(scene.args)}`);
  for (const { ends, gidIndex } of links) {
    const [left, right] = ends.map(
      ({ program, qp }) => `program ${program} QP ${qp} (host ${programs[program]!.node})`,
    );
    const path = gidIndex === undefined ? '' : `, GID ${gidIndex}`;
    lines.push(`${left} ═ ${right}: ${describeQp(story, ends[0])}${path}`);
  }
  for (const [index, turn] of turns.entries())
    for (const [program, { cqs, areas, isMoved }] of turn.programs.entries())
      if (cqs.length + areas.length > 0)
        lines.push(
          `turn ${index + 1}, program ${program}: CQs ${cqs.join(' ')}, areas ${areas.join(' ')} made anew${isMoved ? ' elsewhere' : ''}`,
        );
  for (const [program, { windows = [], early, steps }] of programs.entries()) {
    if (windows.length > 0)
      lines.push(
        `program ${program}: windows of type ${windows.map(({ isType2 }) => (isType2 ? 2 : 1)).join(' ')}`,
      );
    for (const step of early) lines.push(`program ${program} first: ${describeStep(step)}`);
    for (const step of steps) lines.push(`program ${program}: ${describeStep(step)}`);
  }
  return lines;
}

function describeQp(
  story: Story,
  { program, qp }: { readonly program: number; readonly qp: number },
): string {
  const plan = story.programs[program]!.qps[qp]!;
  const { transport, mtu, timeout, retryCount, rnrRetry, rnrTimer, psn, renewal } = plan;
  const reliable =
    transport === 'RC' ? `, time-out ${timeout}, ${retryCount} retries, RNR ${rnrRetry}/${rnrTimer}` : '';
  const since =
    renewal === undefined ? '' : `, from turn ${renewal.turn} on for QP ${renewal.of} (${renewal.how})`;
  return `${transport}, MTU ${mtuBytes(mtu)}${reliable}, PSN ${psn}${since}`;
}

function describeStep(step: Step): string {
  switch (step.do) {
    case 'post':
      return `post on QP ${step.qp}: ${step.wrs.map(describeSend).join('; ')}`;
    case 'receive':
      return `receive on QP ${step.qp}: ${step.wrs.map(describeReceive).join('; ')}`;
    case 'receiveShared':
      return `receive on SRQ ${step.srq}: ${step.wrs.map(describeReceive).join('; ')}`;
    case 'peek':
      return `look at area ${step.area} from ${step.offset}, ${step.length} bytes`;
    default: {
      const { do: what, ...rest } = step;
      return [what, ...Object.entries(rest).map(([name, value]) => `${name} ${value}`)].join(' ');
    }
  }
}

function describeSend(send: SendPlan): string {
  const { id, opcode, sges, remote, bind, through, isSignalled, isFenced, isInline, flaw } = send;
  const there = remote === undefined ? '' : ` at peer's area ${remote.area}+${remote.offset}`;
  const flags = [
    bind === undefined ? '' : describeBind(bind),
    through === undefined ? '' : `by the key of bind ${through}`,
    isSignalled ? 'signalled' : '',
    isFenced ? 'fenced' : '',
    isInline ? 'inline' : '',
    flaw === 'none' ? '' : `flaw ${flaw}`,
  ];
  return `${verbNameOf(opcode)} ${id} of ${lengthOf(sges)} bytes ${buffers(sges)}${there} ${flags.filter(Boolean).join(', ')}`.trimEnd();
}

const describeBind = ({ window, area, offset, length, access, isZeroBased }: BindPlan): string =>
  length === 0
    ? `window ${window} to nothing`
    : `window ${window} to area ${area}+${offset}:${length}, rights 0x${access.toString(16)}${isZeroBased ? ', from 0' : ''}`;

const describeReceive = ({ id, sges, flaw }: ReceivePlan): string =>
  `${id} of ${lengthOf(sges)} bytes ${buffers(sges)}${flaw === 'none' ? '' : ` flaw ${flaw}`}`;

const buffers = (sges: readonly SgePlan[]): string =>
  `[${sges.map(({ area, offset, length }) => `${area}+${offset}:${length}`).join(' ')}]`;

/**
 * Describes the second play of a story. @param epochPs the length of its epochs, if it is not the requested one
 */
export function againText(again: Again, epochPs = again.epochPs): string {
  const { partition, shuffleSeed, isPlain, isObserved, isUnwatched } = again;
  const words = [`in partition ${partition}`];
  if (shuffleSeed !== undefined) words.push(`shuffled by ${shuffleSeed}`);
  if (epochPs !== undefined) words.push(`in epochs of ${epochPs} ps`);
  if (isPlain === true) words.push('without shortcuts');
  if (isObserved === true) words.push('with all observers');
  if (isUnwatched === true) words.push('without observers');
  return words.join(', ');
}
