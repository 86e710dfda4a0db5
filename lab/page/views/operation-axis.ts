/** The axis of one operation: its milestones and stages, cores, links, blocks and memories, levels of queues and credits. */
import { timeText } from '../../../explain/text/format.ts';
import { wordsOf } from '../../../explain/text/words.ts';
import type { OperationPicture, PictureLevel, PictureRecord } from '../../protocol.ts';
import { colourOf } from '../diagram.ts';
import type { Axis, AxisRow } from '../time-axis.ts';

const milestoneColour = 13;
/** Stages alternate between two colours: colours of the key would suggest meanings that they do not have. */
const stageColours = [13, 7] as const;

/** Rows of events, from the milestones down to the levels. */
export function axisOf(picture: OperationPicture): Axis {
  const { stages, milestones, records, tracks, levels, fromPs, toPs } = picture;
  const of = (
    title: string,
    process: string,
    wanted: (record: PictureRecord, group: string) => boolean,
    colour: (record: PictureRecord) => number,
    span: (record: PictureRecord) => readonly [number, number] = (record) => [record.fromPs, record.toPs],
  ) => ({
    title,
    items: records
      .filter(
        (record) => tracks[record.track]!.process === process && wanted(record, tracks[record.track]!.group),
      )
      .map((record) => {
        const [from, to] = span(record);
        const end = Math.min(to, toPs);
        return {
          fromPs: Math.max(from, fromPs),
          toPs: Math.max(from, end),
          colour: colour(record),
          title: `${record.label}, ${timeText(from)}`,
        };
      }),
  });
  const ofGroup = (title: string, process: string, group: string) =>
    of(
      title,
      process,
      ({ kind }, own) => own === group && kind !== 'updateFc' && kind !== 'flowControl',
      colourOf,
    );
  const work = (title: string, process: string, group: string, colour: number) =>
    of(
      title,
      process,
      (_, own) => own === group,
      ({ kind }) => (kind === 'blockStalled' ? 3 : colour),
    );
  const memory = (title: string, process: string) =>
    of(
      title,
      process,
      ({ inMemoryPs }) => inMemoryPs !== undefined,
      colourOf,
      ({ inMemoryPs }) => [inMemoryPs!, inMemoryPs!],
    );
  // A stage too short to see would break the alternation of its neighbours' colours.
  const lasting = stages.filter((stage) => stage.toPs - stage.fromPs > (toPs - fromPs) / 200);
  return {
    fromPs,
    toPs,
    rows: [
      {
        title: 'milestones',
        items: milestones.map(({ atPs, text }) => ({
          fromPs: atPs,
          toPs: atPs,
          colour: milestoneColour,
          title: `${text}, ${timeText(atPs)}`,
        })),
      },
      {
        title: 'stages',
        items: stages.map((stage) => ({
          fromPs: stage.fromPs,
          toPs: stage.toPs,
          colour: stageColours[lasting.indexOf(stage) & 1]!,
          title: `${wordsOf(stage.name)}, ${timeText(stage.toPs - stage.fromPs)}`,
          text: wordsOf(stage.name),
        })),
      },
      work('host 0 cores', 'host0', 'cores', 8),
      memory('host 0 memory', 'host0'),
      ofGroup('PCIe to device 0', 'hca0', 'pcie'),
      ofGroup('PCIe to host 0', 'host0', 'pcie'),
      work('device 0', 'hca0', 'blocks', 9),
      ofGroup('cable to 1', 'hca1', 'cable'),
      ofGroup('cable to 0', 'hca0', 'cable'),
      work('device 1', 'hca1', 'blocks', 9),
      ofGroup('PCIe to host 1', 'host1', 'pcie'),
      ofGroup('PCIe to device 1', 'hca1', 'pcie'),
      memory('host 1 memory', 'host1'),
      work('host 1 cores', 'host1', 'cores', 8),
      ...levels.map(levelRow),
    ],
  };
}

/** Name of a queue with its block, in words: `dmaRead: completions`. */
export const levelWords = (name: string): string => name.replace(/^\w+(?=:)|^pcie\b/, wordsOf);

const levelRow = ({ process, name, steps }: PictureLevel): AxisRow => ({
  title: `${process} ${levelWords(name)}`,
  name: `${process} ${name}`,
  items: [],
  levels: steps,
});
