/** A message port or worker of Node in the form that comlink needs: with the event listeners of the web. */
import type { MessagePort, Worker } from 'node:worker_threads';
import type { Endpoint } from 'comlink';

interface MessageLike {
  readonly data: unknown;
}
type Listener = ((event: MessageLike) => void) | { handleEvent(event: MessageLike): void };

export function endpointOf(port: Worker | MessagePort): Endpoint {
  const listeners = new WeakMap<Listener, (data: unknown) => void>();
  return {
    postMessage: (message: unknown) => port.postMessage(message),
    addEventListener: (_type: string, listener: Listener) => {
      const onMessage = (data: unknown): void => {
        if (typeof listener === 'function') listener({ data });
        else listener.handleEvent({ data });
      };
      port.on('message', onMessage);
      listeners.set(listener, onMessage);
    },
    removeEventListener: (_type: string, listener: Listener) => {
      const onMessage = listeners.get(listener);
      if (onMessage !== undefined) port.off('message', onMessage);
      listeners.delete(listener);
    },
  };
}
