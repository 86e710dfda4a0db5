/** The blocks of the data path, as those see them that act on several: what goes wrong, what comes and goes, what ends. */

import type { CompletionWriter } from './completion/index.ts';
import type { HcaCore } from './core.ts';
import type { Doorbells } from './doorbells/index.ts';
import type { AsyncEvents } from './events/index.ts';
import type { Flusher } from './lifecycle/index.ts';
import type { ContextCache, PageFaults } from './memory/index.ts';
import type { SendRecords } from './objects/index.ts';
import type { Loopback, Transmitter } from './packets/index.ts';
import type { PayloadWriter, ReceiveWqeFetch } from './receive-queue/index.ts';
import type { Receiver } from './receiver/index.ts';
import type { Acknowledgements, RequestCompletion, Requester, RetryTimers } from './requester/index.ts';
import type { ResponseEngine } from './responder/index.ts';
import type { SendScheduler, WqeFetch, WqeLines } from './send-queue/index.ts';
import type { OperationLedger } from './statistics/index.ts';

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
