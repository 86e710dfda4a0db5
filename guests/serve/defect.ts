/** A defect of the emulator in a report: the model's error, with its chain of causes. */
import { type ExactPs, ProcessFailedError } from '../../sim/index.ts';

/** The model threw an error: the activity, the place, and the time. */
export interface Defect {
  readonly node: number;
  /** The guest's access, or `time passing`. */
  readonly access: string;
  readonly atPs: ExactPs;
  readonly message: string;
  readonly stack: string;
  /** The error's cause, that one's cause, and so on: the last one gives the place of the error. */
  readonly causes: readonly DefectCause[];
}

export interface DefectCause {
  readonly message: string;
  readonly stack: string;
}

/** The activity. An undefined node is the one that the error names, or the first. */
export interface DefectCircumstances {
  readonly node: number | undefined;
  readonly access: string;
  readonly atPs: ExactPs;
}

/** A chain of causes may be circular. */
const causeCountMax = 8;

export function defectOf(thrown: unknown, { node, access, atPs }: DefectCircumstances): Defect {
  const causes: DefectCause[] = [];
  for (let at = causeOf(thrown); at !== undefined && causes.length < causeCountMax; at = causeOf(at)) {
    causes.push(textOf(at));
  }
  return { node: node ?? nodeOf(thrown), access, atPs, ...textOf(thrown), causes };
}

const causeOf = (thrown: unknown): unknown => (thrown instanceof Error ? thrown.cause : undefined);

const textOf = (thrown: unknown): DefectCause => {
  if (thrown instanceof Error) return { message: thrown.message, stack: thrown.stack ?? '' };
  try {
    return { message: String(thrown), stack: '' };
  } catch {
    return { message: 'a value of which no text can be made', stack: '' };
  }
};

/** Processes of a served machine are called `hca1`, `guest1`, by their node. */
function nodeOf(thrown: unknown): number {
  const name = thrown instanceof ProcessFailedError ? thrown.processName : '';
  return Number(/\d+$/.exec(name)?.[0] ?? 0);
}
