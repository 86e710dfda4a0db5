/**
 * When all has ended, switches hold nothing: no packet, no byte of a buffer, no credit of a neighbour; no neighbour is stopped, and tables
 * are as they were.
 */
import type { BlockState } from '../../../sim/index.ts';
import { isOnEthernet, type PlayedFabric } from '../played.ts';

type Fields = Readonly<Record<string, unknown>>;
const fieldsOf = (state: unknown): Fields => (state ?? {}) as Fields;
const listOf = (value: unknown): readonly Fields[] => (value ?? []) as readonly Fields[];

export function judgeQuiet(played: PlayedFabric): string[] {
  const { ended, fresh, error } = played;
  if (error !== undefined) return [];
  return [...ended].flatMap(([node, state]) =>
    (isOnEthernet(played) ? ofFrames(state) : ofPackets(state, fresh.get(node)!)).map(
      (what) => `switch ${node} at the end: ${what}`,
    ),
  );
}

function ofFrames({ buffer, ports }: BlockState): string[] {
  const { usedBytes, sharedUsedBytes } = fieldsOf(buffer);
  const held =
    usedBytes === 0 && sharedUsedBytes === 0
      ? []
      : [`its buffer holds ${usedBytes} bytes, ${sharedUsedBytes} shared`];
  return [
    ...held,
    ...listOf(ports).flatMap(({ port, waiting, queues, link }) => {
      const { frames, bytes } = fieldsOf(queues);
      const isEmpty =
        waiting === 0 && frames === 0 && (bytes as readonly number[]).every((count) => count === 0);
      const { isStopping, isPaused } = fieldsOf(fieldsOf(link)['flowControl']);
      return [
        ...(isEmpty ? [] : [`port ${port} holds frames: ${waiting} by it, ${frames} for it, bytes ${bytes}`]),
        ...(isStopping === true ? [`port ${port} still stops its sender`] : []),
        ...(isPaused === true ? [`port ${port} is still stopped`] : []),
      ];
    }),
  ];
}

function ofPackets({ ports, tables }: BlockState, fresh: BlockState): string[] {
  // A fault of an entry always ends before the story does.
  const isRestored = JSON.stringify(tables) === JSON.stringify(fresh['tables']);
  const held = listOf(ports).flatMap(({ port, data, management, link }, at) => {
    const before = fieldsOf(fieldsOf(listOf(fresh['ports'])[at]!['link'])['buffers']);
    const { buffers, sender } = fieldsOf(link);
    const { freeBlocks } = fieldsOf(buffers);
    const { waitsFor, heldPackets } = fieldsOf(sender);
    const packets = Number(fieldsOf(data)['packets']) + Number(fieldsOf(management)['packets']);
    return [
      ...(packets === 0 ? [] : [`port ${port} holds ${packets} packets`]),
      ...(freeBlocks === before['freeBlocks']
        ? []
        : [`port ${port} has ${freeBlocks} free blocks of ${before['freeBlocks']}`]),
      ...(waitsFor === 'nothing' ? [] : [`port ${port} waits for ${waitsFor}`]),
      ...(heldPackets === 0 ? [] : [`port ${port} holds back ${heldPackets} packets`]),
    ];
  });
  return [...held, ...(isRestored ? [] : ['its tables differ from those of the beginning'])];
}
