/**
 * PAUSE frames at one end of the cable (IEEE 802.3-2018, annex 31B): their form; a paused end sends nothing but PAUSE frames, and frames that
 * its port had taken before, until the time is over or the pause is lifted; an end that pauses its peer repeats the request in time, and
 * lifts the pause at last.
 */
import type { CableEnd, SeenFrame } from './cable-end.ts';
import { destinationOf, isControl, sourceOf } from './frame.ts';
import type { LinkTimes } from './link-times.ts';

const pauseGroup = '0180c2000001';
const pauseOpcode = 1;
const controlBytes = 60;

const opcodeOf = (bytes: Uint8Array): number => bytes[14]! * 256 + bytes[15]!;
const quantaOf = (bytes: Uint8Array): number => bytes[16]! * 256 + bytes[17]!;

export interface PauseRules {
  readonly times: LinkTimes;
  /** Pause quanta that this port requests. */
  readonly quanta: number;
  /** Source MAC of the end's other frames. */
  readonly mac: string | undefined;
  /** Whether the end obeys PAUSE frames. */
  readonly isHeeding: boolean;
  /** Whether faults delay frames: a frame already accepted may then begin at any time. */
  readonly hasLateFrames: boolean;
  /** Whether all PAUSE frames leave as they should, and the link stays up. */
  readonly isUndisturbed: boolean;
  /** Instant from which nothing more happens. */
  readonly endPs: bigint;
}

export function judgePauses(end: CableEnd, rules: PauseRules): string[] {
  const own = end.sent.filter(({ bytes }) => isControl(bytes));
  return [
    ...own.flatMap((frame) => judgeForm(frame, rules)).slice(0, 1),
    ...(rules.isUndisturbed ? judgeStopping(own, rules) : []),
    ...(rules.isHeeding && !rules.hasLateFrames ? judgeStopped(end, rules) : []),
  ].map((what) => `node ${end.node}: ${what}`);
}

function judgeForm({ bytes, atPs }: SeenFrame, { mac, quanta }: PauseRules): string[] {
  const rest = bytes.subarray(18).some((byte) => byte !== 0);
  const isRight =
    bytes.length === controlBytes &&
    destinationOf(bytes) === pauseGroup &&
    (mac === undefined || sourceOf(bytes) === mac) &&
    opcodeOf(bytes) === pauseOpcode &&
    (quantaOf(bytes) === 0 || quantaOf(bytes) === quanta) &&
    !rest;
  return isRight ? [] : [`what it sent at ${atPs} ps is no PAUSE frame of ${quanta} quanta or none`];
}

/** An end that pauses its peer repeats the request after half of the time, as soon as the link is free, until it lifts the pause. */
function judgeStopping(own: readonly SeenFrame[], { times, quanta, endPs }: PauseRules): string[] {
  const halfPs = times.quantaPs(quanta / 2);
  // Frames that the port had accepted, the longest frame, and the PAUSE frame itself.
  const waitPs = times.takenPs + 2n * times.longestPs + times.onLinkPs(controlBytes) + 2n;
  let isStopping = false;
  let sincePs = 0n;
  for (const { bytes, atPs } of own) {
    if (isStopping && atPs - sincePs > halfPs + waitPs)
      return [
        `it asked for a pause at ${sincePs} ps, and again only at ${atPs} ps: half of that is ${halfPs} ps`,
      ];
    if (!isStopping && quantaOf(bytes) === 0)
      return [`it let the other end go on at ${atPs} ps, which it had not stopped`];
    isStopping = quantaOf(bytes) !== 0;
    sincePs = atPs;
  }
  return isStopping && endPs - sincePs > halfPs + waitPs
    ? [`it stopped the other end at ${sincePs} ps, and never let it go on`]
    : [];
}

/** An end that is stopped begins no frame but a PAUSE frame. */
function judgeStopped({ sent, received }: CableEnd, { times }: PauseRules): string[] {
  const pauses = received.filter(({ bytes, note }) => isControl(bytes) && note === '');
  let next = 0;
  let fromPs = 0n;
  let untilPs = 0n;
  for (const { bytes, atPs } of sent) {
    if (isControl(bytes)) continue;
    const beginPs = atPs - times.onLinkPs(bytes.length);
    for (let pause = pauses[next]; pause !== undefined && pause.atPs < beginPs; pause = pauses[++next]) {
      if (pause.atPs >= untilPs) fromPs = pause.atPs;
      untilPs = pause.atPs + times.quantaPs(quantaOf(pause.bytes));
    }
    if (beginPs < untilPs - 1n && beginPs > fromPs + times.takenPs)
      return [
        `a frame begins at ${beginPs} ps, though it was stopped from ${fromPs} to ${untilPs} ps and had taken no more than what begins within ${times.takenPs} ps`,
      ];
  }
  return [];
}
