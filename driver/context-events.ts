/**
 * The asynchronous events of one context, for its port and its objects, in order of occurrence. An event is kept until the
 * program fetches it or its object is destroyed.
 */

import { BlockingQueue } from './blocking-queue.ts';
import type { Device } from './device.ts';
import type { EventSink } from './event-router.ts';
import type { ChannelObject } from './kernel-objects.ts';
import type { Cpu } from './platform.ts';
import { type AsyncEventRecord, AsyncEventType, type Handle } from './uapi.ts';

export class ContextEvents {
  readonly #device: Device;
  readonly #asyncEvents: BlockingQueue<AsyncEventRecord>;

  constructor(device: Device) {
    this.#device = device;
    this.#asyncEvents = this.newQueue();
    device.router.portListeners.add(this.#portEvent);
  }

  /** A queue of events that threads of the process may wait for. */
  newQueue<T>(): BlockingQueue<T> {
    const { platform } = this.#device;
    return new BlockingQueue(
      () => platform.newSignal(),
      () => platform.stopwatch(),
    );
  }

  /** Blocks until an event is present; undefined after `timeoutPs`. */
  take(cpu: Cpu, timeoutPs?: number): Promise<AsyncEventRecord | undefined> {
    return this.#asyncEvents.take(cpu, timeoutPs);
  }

  /** Destination of an object's events. */
  sinkOf(element: 'qp' | 'cq' | 'srq', handle: Handle, channel?: ChannelObject): EventSink {
    return {
      completion: () => channel?.events.push(handle),
      asyncEvent: (eventType) => this.#asyncEvents.push({ eventType, element, handle }),
    };
  }

  /** Drops events of a destroyed object. */
  forget(element: AsyncEventRecord['element'], handle: Handle): void {
    this.#asyncEvents.drop((event) => event.element === element && event.handle === handle);
  }

  /** The device has died. */
  deviceFatal(): void {
    const eventType = AsyncEventType.IBV_EVENT_DEVICE_FATAL;
    this.#asyncEvents.push({ eventType, element: 'device', handle: 0 });
  }

  /** The context is being closed: waiting threads receive no more events. */
  close(): void {
    this.#asyncEvents.close();
    this.#device.router.portListeners.delete(this.#portEvent);
  }

  readonly #portEvent = (port: number, eventType: AsyncEventType): void => {
    this.#asyncEvents.push({ eventType, element: 'port', handle: port });
  };
}
