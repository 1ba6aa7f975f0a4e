// SPDX-License-Identifier: BSD-2-Clause

package natra

import (
	"context"
	"sync"
	"time"
)

// readerPause is how long Next waits before it looks for events again: programs do not
// wake readers up, and the library's own descriptor turns as often.
const readerPause = 100 * time.Millisecond

// Events reads the events that the programs of this node report. The node keeps the
// newest 1024, whether or not anybody reads, and each reader begins with the oldest.
type Events struct {
	mu      sync.Mutex
	reader  eventReader
	waiting []Event
}

// OpenEvents begins to read events; ENOENT: no program that reports any is loaded.
func (h *Handle) OpenEvents(ctx context.Context) (*Events, error) {
	reader, err := h.backend.openEvents(ctx)
	if err != nil {
		return nil, err
	}
	return &Events{reader: reader}, nil
}

// Next returns the next event, and waits for it until the context ends.
func (e *Events) Next(ctx context.Context) (Event, error) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return Event{}, ended(ctx, "events_read")
		case <-timer.C:
		}
		event, ok, err := e.Read()
		if ok || err != nil {
			return event, err
		}
		timer.Reset(readerPause)
	}
}

// Read returns the next event without waiting; false: there is none at present.
func (e *Events) Read() (Event, bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.reader == nil {
		return Event{}, false, errClosed
	}
	if len(e.waiting) == 0 {
		var err error
		if e.waiting, err = e.reader.read(); err != nil {
			return Event{}, false, err
		}
	}
	if len(e.waiting) == 0 {
		return Event{}, false, nil
	}
	event := e.waiting[0]
	e.waiting = e.waiting[1:]
	return event, true, nil
}

// Close frees the reader. The events stay.
func (e *Events) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.reader != nil {
		e.reader.close()
		e.reader = nil
	}
	return nil
}
