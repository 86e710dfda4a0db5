/** The blocks of the data path, as those see them that act on several: what goes wrong, what comes and goes, what ends. */

import type { CompletionWriter } from './completion/completion-writer.ts';
import type { HcaCore } from './core.ts';
import type { Doorbells } from './doorbells/doorbells.ts';
import type { AsyncEvents } from './events/async-events.ts';
import type { Flusher } from './lifecycle/flusher.ts';
import type { ContextCache } from './memory/context-cache.ts';
import type { PageFaults } from './memory/page-faults.ts';
import type { SendRecords } from './objects/send-records.ts';
import type { Loopback } from './packets/loopback.ts';
import type { Transmitter } from './packets/transmitter.ts';
import type { PayloadWriter } from './receive-queue/payload-writer.ts';
import type { ReceiveWqeFetch } from './receive-queue/receive-wqe-fetch.ts';
import type { Receiver } from './receiver/receiver.ts';
import type { Acknowledgements } from './requester/acknowledgements.ts';
import type { RequestCompletion } from './requester/request-completion.ts';
import type { Requester } from './requester/requester.ts';
import type { RetryTimers } from './requester/retry-timers.ts';
import type { ResponseEngine } from './responder/response-engine.ts';
import type { SendScheduler } from './send-queue/send-scheduler.ts';
import type { WqeFetch } from './send-queue/wqe-fetch.ts';
import type { WqeLines } from './send-queue/wqe-lines.ts';
import type { OperationLedger } from './statistics/operations.ts';

export interface DataPathParts {
  readonly core: HcaCore;
  readonly qpcCache: ContextCache;
  readonly cqcCache: ContextCache;
  readonly srqcCache: ContextCache;
  readonly lines: WqeLines;
  readonly records: SendRecords;
  readonly operations: OperationLedger;
  readonly doorbells: Doorbells;
  readonly scheduler: SendScheduler;
  readonly wqeFetch: WqeFetch;
  readonly requester: Requester;
  readonly requestCompletion: RequestCompletion;
  readonly transmitter: Transmitter;
  readonly loopback: Loopback;
  readonly receiver: Receiver;
  readonly responses: ResponseEngine;
  readonly receives: ReceiveWqeFetch;
  readonly acknowledgements: Acknowledgements;
  readonly timers: RetryTimers;
  readonly completions: CompletionWriter;
  readonly flusher: Flusher;
  readonly asyncEvents: AsyncEvents;
  readonly writer: PayloadWriter;
  readonly pageFaults: PageFaults;
}
