/**
 * The commands of a driver in the order in which it posted them, folded: the contents of a trace of category `commands`. Equal
 * steps of two drivers are aligned.
 */

/** A run of this many similar commands. */
export interface SequenceStep {
  readonly command: string;
  readonly opcodeModifier: number;
  /** Input modifiers of the first and the last of them. */
  readonly inputModifiers: readonly [string, string];
  readonly isByEvent: boolean;
  readonly count: number;
}

const commandLine =
  /^ *(\d+\.\d+) ns +\S+ +commands +(\S+) in_mod (0x[0-9a-f]+)(?: \([^)]*\))?(?: op_mod (\d+))? (polled|token)\b.*: (\S+?)(?:, (\d+\.\d+) ns)?$/;

/** Reads the steps out of a trace in text form; commands that were abandoned are left out. */
export function stepsOfTrace(trace: string): SequenceStep[] {
  const posted = trace.split('\n').flatMap((line) => {
    const match = commandLine.exec(line);
    if (match === null || match[7] === undefined) return [];
    const [, finished, command, inputModifier, opcodeModifier = '0', how, , duration] = match;
    const step: SequenceStep = {
      command: command!,
      opcodeModifier: Number(opcodeModifier),
      inputModifiers: [inputModifier!, inputModifier!],
      isByEvent: how === 'token',
      count: 1,
    };
    return [{ atNs: Number(finished) - Number(duration), step }];
  });
  return folded(posted.toSorted((left, right) => left.atNs - right.atNs).map(({ step }) => step));
}

/** Key that is equal for two commands of the same step. */
const keyOf = ({ command, opcodeModifier, isByEvent }: SequenceStep): string =>
  `${command} ${opcodeModifier} ${isByEvent}`;

/** Joins a run of similar steps. */
export function folded(steps: readonly SequenceStep[]): SequenceStep[] {
  const out: SequenceStep[] = [];
  for (const step of steps) {
    const last = out.at(-1);
    if (last === undefined || keyOf(last) !== keyOf(step)) out.push(step);
    else
      out[out.length - 1] = {
        ...last,
        inputModifiers: [last.inputModifiers[0], step.inputModifiers[1]],
        count: last.count + step.count,
      };
  }
  return out;
}

/** A row: a step of one driver, of the other driver, or the same step of both. */
export interface SequenceRow {
  readonly left: SequenceStep | undefined;
  readonly right: SequenceStep | undefined;
}

/** Aligns two sequences, with as many equal steps opposite each other as possible. */
export function sideBySide(left: readonly SequenceStep[], right: readonly SequenceStep[]): SequenceRow[] {
  const common = Array.from({ length: left.length + 1 }, () => new Int32Array(right.length + 1));
  for (let l = left.length - 1; l >= 0; l--)
    for (let r = right.length - 1; r >= 0; r--)
      common[l]![r] =
        keyOf(left[l]!) === keyOf(right[r]!)
          ? common[l + 1]![r + 1]! + 1
          : Math.max(common[l + 1]![r]!, common[l]![r + 1]!);
  const rows: SequenceRow[] = [];
  let [l, r] = [0, 0];
  while (l < left.length || r < right.length) {
    const canPair = l < left.length && r < right.length && keyOf(left[l]!) === keyOf(right[r]!);
    if (canPair) rows.push({ left: left[l++], right: right[r++] });
    else if (r >= right.length || (l < left.length && common[l + 1]![r]! >= common[l]![r + 1]!))
      rows.push({ left: left[l++], right: undefined });
    else rows.push({ left: undefined, right: right[r++] });
  }
  return rows;
}

/** A step in words: `MAP_ICM[0x1] ×45, polled`. */
export function stepText({
  command,
  opcodeModifier,
  inputModifiers,
  isByEvent,
  count,
}: SequenceStep): string {
  const [first, last] = inputModifiers;
  const range = first === last ? first : `${first}…${last}`;
  const modifier = opcodeModifier === 0 ? '' : ` op_mod ${opcodeModifier}`;
  const times = count === 1 ? '' : ` ×${count}`;
  return `${command} [${range}]${modifier}${times}${isByEvent ? '' : ' (polled)'}`;
}
