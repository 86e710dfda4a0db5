/** Latencies of verbs between two programs that poll, as `hca perf` measures them. */
import type { Path, Post } from './path.ts';
import { gathered, type Terms } from './terms.ts';

/** A poll finds its entry at the end of an iteration: after half an iteration on average. */
export const pollPs = (path: Path): number => path.core(path.config.host.cost.pollEmpty) / 2;

/** Polling one available completion. */
export const takeCompletionPs = (path: Path): number => {
  const { pollCompletion, readDmaLine } = path.config.host.cost;
  return path.core(pollCompletion + readDmaLine);
};

/** `send-lat`: from the post until the completion at the peer, including the repost of the receive. */
export function sendLatency(path: Path, post: Post): Terms {
  return gathered([
    { name: 'post', ps: path.postPs(post) },
    ...path.takeUp(post),
    ...path.deliver(post),
    { name: 'poll', ps: pollPs(path) },
    { name: 'completion', ps: takeCompletionPs(path) },
    { name: 'postReceive', ps: path.core(path.config.host.cost.postRecv) },
  ]);
}

/** `write-lat`: from the post until a program that spins on the last byte sees it. */
export function writeLatency(path: Path, post: Post): Terms {
  return gathered([
    { name: 'post', ps: path.postPs(post) },
    ...path.takeUp(post),
    ...path.deliver(post),
    { name: 'poll', ps: pollPs(path) },
  ]);
}

/** `read-lat`: from the post to the completion, a whole round trip. */
export function readLatency(path: Path, lengthBytes: number, qpInlineBytes = 0): Terms {
  const post: Post = { verb: 'read', lengthBytes, isInline: false, qpInlineBytes };
  return gathered([
    { name: 'post', ps: path.postPs(post) },
    ...path.takeUp(post),
    ...path.readBack(lengthBytes),
    { name: 'poll', ps: pollPs(path) },
    { name: 'completion', ps: takeCompletionPs(path) },
  ]);
}
