/** Sentences on packets that the reader of a capture did not show, and the reasons: nothing is omitted silently. */
import type { CaptureReading } from '../../analyser/capture/index.ts';
import { visible } from '../../base/index.ts';

/** Greatest number of malformed packets that are listed. */
const LISTED = 20;

export function captureNotes({ stream, feed, unfollowed }: CaptureReading): string[] {
  const { malformed, malformedCount, cutCount, repeatedCount, isTwoEnded } = feed;
  const other = feed.other.toSorted((left, right) => right.count - left.count);
  const otherCount = other.reduce((sum, { count }) => sum + count, 0);
  const names = other.slice(0, 5).map(({ count, reason }) => `${count} ${reason}`);
  const skipped = [...stream.skippedBlocks].map(([name, count]) => `${count} ${name}`);
  const incomplete = stream.interfaces.filter(({ droppedPackets }) => droppedPackets > 0);
  const listed = malformed.slice(0, LISTED);
  return [
    ...(repeatedCount > 0
      ? [
          `${packets(repeatedCount)} seen at a second place${isTwoEnded ? ', which the file does not tell from the first' : ''}: each counts once, where it was seen first.`,
        ]
      : []),
    ...(otherCount > 0
      ? [`${frames(otherCount)} of other protocols: ${names.join(', ')}${other.length > 5 ? ', …' : ''}.`]
      : []),
    ...(cutCount > 0
      ? [`${frames(cutCount)} cut by the capture (its snap length): their CRCs were not checked.`]
      : []),
    ...feed.cut.map(
      ({ count, reason, firstNumber }) =>
        `${frames(count)} ${count === 1 ? 'ends' : 'end'} too early to say what it carries (${reason}; the first is frame ${firstNumber}).`,
    ),
    ...(stream.untimedFrames > 0
      ? [
          `${frames(stream.untimedFrames)} without a time (simple packet blocks): each has that of the frame before.`,
        ]
      : []),
    ...(skipped.length > 0 ? [`Blocks without packets: ${skipped.join(', ')}.`] : []),
    ...incomplete.map(
      ({ name, droppedPackets }) =>
        `${name === '' ? 'The capture' : `The capture at ${visible(name)}`} did not keep ${droppedPackets} packets.`,
    ),
    ...(unfollowed > 0 ? [`${packets(unfollowed)} of more connections than are followed.`] : []),
    ...listed.map(({ number, reason }) => `Frame ${number} cannot be read: ${reason}.`),
    ...(malformedCount > listed.length
      ? [`${malformedCount - listed.length} more frames cannot be read.`]
      : []),
    ...unreadNotes({ stream, feed }),
  ];
}

/** Frames without a reader, and places where the file itself is damaged. */
function unreadNotes({ stream, feed }: Pick<CaptureReading, 'stream' | 'feed'>): string[] {
  const { problems, problemCount } = stream;
  return [
    ...feed.unread.map(
      ({ count, reason, firstNumber }) =>
        `${frames(count)} not read: there is no reader for ${reason} (the first is frame ${firstNumber}).`,
    ),
    ...problems.map(({ atByte, reason }) => `At byte ${atByte}: ${reason}.`),
    ...(problemCount > problems.length
      ? [`${problemCount - problems.length} more places cannot be read.`]
      : []),
  ];
}

const frames = (count: number): string => `${count} ${count === 1 ? 'frame' : 'frames'}`;
const packets = (count: number): string => `${count} ${count === 1 ? 'packet' : 'packets'}`;
