/**
 * Contents of a picture at one instant: states of blocks, messages on their way and their positions, levels; and the
 * instants at which something changes.
 */
import type { MachinePicture, PictureLevel, PictureRecord } from '../protocol.ts';

/** Records of a picture, indexed for the look-ups of each instant; built when the picture is first drawn. */
interface Gathered {
  readonly crossing: readonly PictureRecord[];
  readonly written: readonly PictureRecord[];
  /** Records that begin or take effect at an instant. */
  readonly byInstant: ReadonlyMap<number, readonly PictureRecord[]>;
  /** Records by process and name, as the views look them up. */
  readonly ofCell: Map<string, readonly PictureRecord[]>;
}

const known = new WeakMap<MachinePicture, Gathered>();

function gathered(picture: MachinePicture): Gathered {
  const found = known.get(picture);
  if (found !== undefined) return found;
  const byInstant = new Map<number, PictureRecord[]>();
  for (const record of picture.records) {
    const { kind, fromPs, arrivesPs = fromPs, inMemoryPs = fromPs } = record;
    if (kind === 'operation') continue;
    for (const ps of new Set([fromPs, arrivesPs, inMemoryPs])) {
      const same = byInstant.get(ps);
      if (same === undefined) byInstant.set(ps, [record]);
      else same.push(record);
    }
  }
  const made: Gathered = {
    crossing: picture.records.filter(({ kind }) => crossing.has(kind)),
    written: picture.records.filter(({ inMemoryPs }) => inMemoryPs !== undefined),
    byInstant,
    ofCell: new Map(),
  };
  known.set(picture, made);
  return made;
}

/** Time for which an instantaneous event, such as a cache look-up, stays visible. */
const flashPs = 12_000;

/** A message between two ends of a link: how far along the link its head and its tail are. */
export interface UnderWay {
  readonly record: PictureRecord;
  readonly head: number;
  readonly tail: number;
}

/** All messages that cross a link at an instant. */
export function underWay(picture: MachinePicture, atPs: number): UnderWay[] {
  return gathered(picture).crossing.flatMap((record) => {
    const { fromPs, toPs, arrivesPs } = record;
    if (atPs < fromPs) return [];
    // A lost message travels half of a link.
    const endPs = arrivesPs ?? toPs + lostPs;
    if (atPs >= endPs) return [];
    const wayPs = endPs - toPs;
    const part = arrivesPs === undefined ? 0.5 : 1;
    const placeOf = (ps: number): number => part * Math.min(1, Math.max(0, ps / wayPs));
    return [{ record, head: placeOf(atPs - fromPs), tail: placeOf(atPs - toPs) }];
  });
}

const crossing: ReadonlySet<string> = new Set(['tlp', 'updateFc', 'packet', 'flowControl', 'frame']);
const lostPs = 100_000;

/** Writes that have arrived at a root complex and wait for the memory. */
export const waiting = (picture: MachinePicture, atPs: number): PictureRecord[] =>
  gathered(picture).written.filter(
    ({ arrivesPs, inMemoryPs }) =>
      arrivesPs !== undefined && inMemoryPs !== undefined && arrivesPs <= atPs && atPs < inMemoryPs,
  );

export interface CellState {
  readonly state: 'idle' | 'busy' | 'stalled' | 'hit' | 'miss';
  readonly text: string;
  readonly record: PictureRecord | undefined;
}

const idle: CellState = { state: 'idle', text: '', record: undefined };

/** State of a cell of the diagram. */
export function cellState(picture: MachinePicture, process: string, name: string, atPs: number): CellState {
  const record = recordsOfCell(picture, process, name).findLast(({ fromPs, toPs, kind, inMemoryPs }) => {
    const [begin, end] = kind === 'tlp' ? [inMemoryPs!, inMemoryPs!] : [fromPs, toPs];
    return begin <= atPs && atPs < Math.max(end, begin + (end === begin ? flashPs : 0));
  });
  if (record === undefined) return idle;
  const { kind, label } = record;
  if (kind === 'tlp') return { state: 'busy', text: 'written', record };
  if (kind === 'blockStalled') return { state: 'stalled', text: label.replace('stalled: ', ''), record };
  if (kind === 'cacheHit') return { state: 'hit', text: 'hit', record };
  if (kind === 'cacheMiss' || kind === 'refused')
    return { state: 'miss', text: label.replace(/:.*/, ''), record };
  return { state: 'busy', text: label === 'busy' ? '' : label, record };
}

/** Records that a cell of the diagram shows. */
export function recordsOfCell(
  picture: MachinePicture,
  process: string,
  name: string,
): readonly PictureRecord[] {
  const { ofCell } = gathered(picture);
  const key = `${process} ${name}`;
  const found = ofCell.get(key);
  if (found !== undefined) return found;
  const own = recordsFor(picture, process, name);
  ofCell.set(key, own);
  return own;
}

function recordsFor(
  { records, tracks }: MachinePicture,
  process: string,
  name: string,
): readonly PictureRecord[] {
  const isOwn = ({ track }: PictureRecord): boolean => tracks[track]!.process === process;
  if (name === 'memory') return records.filter((each) => isOwn(each) && each.inMemoryPs !== undefined);
  if (name === 'root complex') return [];
  if (name === 'interrupts')
    return records.filter(
      (each) => isOwn(each) && (each.kind === 'interrupt' || each.kind === 'interruptServed'),
    );
  const isOfName = ({ track }: PictureRecord): boolean => tracks[track]!.name === name;
  if (name.endsWith(' cache'))
    return records.filter((each) => isOwn(each) && `${tracks[each.track]!.name} cache` === name);
  if (name === 'doorbells')
    return records.filter(
      (each) => isOwn(each) && (isOfName(each) || tracks[each.track]!.group === 'doorbells'),
    );
  return records.filter((each) => isOwn(each) && isOfName(each));
}

/** Events worth a step when everything is watched; busy blocks are visible anyway. */
const stepped: ReadonlySet<string> = new Set([
  ...['tlp', 'packet', 'doorbell', 'blueFlame', 'cqArm', 'eqDoorbell', 'dmaRead', 'cacheMiss', 'refused'],
  ...['posted', 'stage', 'failed', 'taken', 'interrupt', 'interruptServed', 'core'],
]);

/** Instants at which something begins or takes effect, ascending: for all records, or for some. */
export function instantsOf(picture: MachinePicture, of?: readonly PictureRecord[]): number[] {
  const records = of ?? picture.records.filter(({ kind }) => stepped.has(kind));
  const isWithin = (ps: number): boolean => ps >= picture.fromPs && ps <= picture.toPs;
  const instants = records.flatMap(({ fromPs, arrivesPs, inMemoryPs }) =>
    [fromPs, arrivesPs ?? fromPs, inMemoryPs ?? fromPs].filter(isWithin),
  );
  return [...new Set(instants)].sort((left, right) => left - right);
}

/** Records that begin or take effect at an instant, the most informative first. */
export const happeningAt = (picture: MachinePicture, atPs: number): readonly PictureRecord[] =>
  (gathered(picture).byInstant.get(atPs) ?? []).toSorted(
    (left, right) => Number(right.decoded.length > 0) - Number(left.decoded.length > 0),
  );

/** Value of a level at an instant; undefined before it is known. */
export const levelAt = ({ steps }: PictureLevel, atPs: number): number | undefined =>
  steps.findLast(([fromPs]) => fromPs <= atPs)?.[1];
