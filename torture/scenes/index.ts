/** All scenes, in the order of their names; each file's first comment describes its scene. */
import { ConfigurationError } from '../../base/index.ts';
import { abandonedQueues } from './abandoned-queues.ts';
import { armedInAnyOrder } from './armed-in-any-order.ts';
import { attributesChanged } from './attributes-changed.ts';
import { boundWindows } from './bound-windows.ts';
import { connections } from './connections.ts';
import { copiedByWords } from './copied-by-words.ts';
import { credits } from './credits.ts';
import { crowdOfQueues } from './crowd-of-queues.ts';
import { crowdedEventQueues } from './crowded-event-queues.ts';
import { endsOfRanges } from './ends-of-ranges.ts';
import { extremeAttributes } from './extreme-attributes.ts';
import { failedReads } from './failed-reads.ts';
import { farApart } from './far-apart.ts';
import { fewCredits } from './few-credits.ts';
import { forked } from './forked.ts';
import { framesOutOfOrder } from './frames-out-of-order.ts';
import { fullCompletionQueue } from './full-completion-queue.ts';
import { fullReceiveBuffers } from './full-receive-buffers.ts';
import { highAddresses } from './high-addresses.ts';
import { inlineReceives } from './inline-receives.ts';
import { interruptsInService } from './interrupts-in-service.ts';
import { joinedGroups } from './joined-groups.ts';
import type { Scene, ScenePlan } from './language/index.ts';
import { lateAnswers } from './late-answers.ts';
import { lateReceives } from './late-receives.ts';
import { leftBehind } from './left-behind.ts';
import { linkDown } from './link-down.ts';
import { lostFrames } from './lost-frames.ts';
import { lostLookups } from './lost-lookups.ts';
import { lostPackets } from './lost-packets.ts';
import { maskedAtomics } from './masked-atomics.ts';
import { measuredLatencies } from './measured-latencies.ts';
import { moderatedEvents } from './moderated-events.ts';
import { namedQueues } from './named-queues.ts';
import { nextQueue } from './next-queue.ts';
import { oneMessage, oneMessageInFrames } from './one-message.ts';
import { pagesOnDemand } from './pages-on-demand.ts';
import { pagesTakenBack } from './pages-taken-back.ts';
import { partitions } from './partitions.ts';
import { pausedFrames } from './paused-frames.ts';
import { polledBytes } from './polled-bytes.ts';
import { postedInAnyState } from './posted-in-any-state.ts';
import { readBack } from './read-back.ts';
import { reconnects } from './reconnects.ts';
import { refusedRegistrations } from './refused-registrations.ts';
import { registeredAgain } from './registered-again.ts';
import { requestLists } from './request-lists.ts';
import { resetInTraffic } from './reset-in-traffic.ts';
import { resetWhileConnecting } from './reset-while-connecting.ts';
import { resizedInTraffic } from './resized-in-traffic.ts';
import { sharedDatagrams } from './shared-datagrams.ts';
import { sharedReceives } from './shared-receives.ts';
import { shortEpochs } from './short-epochs.ts';
import { sleepers } from './sleepers.ts';
import { slowHost } from './slow-host.ts';
import { socketStreams } from './socket-streams.ts';
import { solicitedEvents } from './solicited-events.ts';
import { squeezed } from './squeezed.ts';
import { takenAway } from './taken-away.ts';
import { timedWaits } from './timed-waits.ts';
import { tornMessages } from './torn-messages.ts';
import { twoWays } from './two-ways.ts';
import { unanswered } from './unanswered.ts';
import { unpolledCompletions } from './unpolled-completions.ts';
import { wrappedCounters } from './wrapped-counters.ts';
import { wrongDomain } from './wrong-domain.ts';

export const scenes: readonly Scene[] = [
  abandonedQueues,
  armedInAnyOrder,
  attributesChanged,
  boundWindows,
  connections,
  copiedByWords,
  credits,
  crowdOfQueues,
  crowdedEventQueues,
  endsOfRanges,
  extremeAttributes,
  failedReads,
  farApart,
  fewCredits,
  forked,
  framesOutOfOrder,
  fullCompletionQueue,
  fullReceiveBuffers,
  highAddresses,
  inlineReceives,
  interruptsInService,
  joinedGroups,
  lateAnswers,
  lateReceives,
  leftBehind,
  linkDown,
  lostFrames,
  lostLookups,
  lostPackets,
  maskedAtomics,
  measuredLatencies,
  moderatedEvents,
  namedQueues,
  nextQueue,
  oneMessage,
  oneMessageInFrames,

  pagesOnDemand,
  pagesTakenBack,
  partitions,
  pausedFrames,
  polledBytes,
  postedInAnyState,
  readBack,
  reconnects,
  refusedRegistrations,
  registeredAgain,
  requestLists,
  resetInTraffic,
  resetWhileConnecting,
  resizedInTraffic,
  sharedDatagrams,
  sharedReceives,
  shortEpochs,
  sleepers,
  slowHost,
  socketStreams,
  solicitedEvents,
  squeezed,
  takenAway,
  timedWaits,
  tornMessages,
  twoWays,
  unanswered,
  unpolledCompletions,
  wrappedCounters,
  wrongDomain,
];

export const sceneNames: readonly string[] = scenes.map(({ name }) => name);

/** @throws ConfigurationError for a name that no scene has */
export function sceneOf({ name }: Pick<ScenePlan, 'name'>): Scene {
  const scene = scenes.find((one) => one.name === name);
  if (scene === undefined) throw new ConfigurationError('scene', name, `one of ${sceneNames.join(', ')}`);
  return scene;
}
export type { Scene, ScenePlan } from './language/index.ts';
