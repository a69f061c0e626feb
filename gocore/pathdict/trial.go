package pathdict

// A call that takes a name as text can be refused, and a refused call changes nothing: the names that it was the first to use
// go again. So such a name is tried: it has a token like any other, until the last call that tries it ends. A call that
// interns it meanwhile keeps it, and so does one that tries it and goes well.
//
// The token of a name on trial is told to no client. The token of one that was withdrawn stands for nothing, later for another name.

// Try returns the token of a name. trial reports that the name is on trial: no call has used it before, or only calls that try it.
// The caller then ends its trial by Keep or Withdraw. Any other name stays as it is.
func (d *Dictionary) Try(s string) (token Token, trial bool, err error) {
	one := [1]string{s}
	if err := checkTokens(one[:]); err != nil {
		return 0, false, err
	}
	hash := d.tokenHash(s)
	d.names.RLock()
	index, known := d.findToken(hash, s)
	if known = known && !d.onTrial(index); known {
		d.tokenPins.set(index)
		token = d.tokenAt(index)
	}
	d.names.RUnlock()
	if known {
		return token, false, nil
	}
	d.names.Lock()
	defer d.names.Unlock()
	index, known = d.findToken(hash, s)
	if known && !d.onTrial(index) {
		d.tokenPins.set(index)
		return d.tokenAt(index), false, nil
	}
	if !known {
		if index, err = d.addToken(hash, s); err != nil {
			return 0, false, err
		}
		d.tokens.reveal()
	}
	if d.trials == nil {
		d.trials = map[uint32]int{}
	}
	d.trials[index]++
	return d.tokenAt(index), true, nil
}

// onTrial reports whether a token may go again. The caller holds the lock, at least for reading.
func (d *Dictionary) onTrial(index uint32) bool {
	if len(d.trials) == 0 {
		return false
	}
	_, trial := d.trials[index]
	return trial
}

// Keep makes a name that was tried one that stays.
func (d *Dictionary) Keep(token Token) {
	d.names.Lock()
	defer d.names.Unlock()
	if index, ok := d.tokenIndex(token); ok {
		delete(d.trials, index)
		d.tokenPins.set(index)
	}
}

// Withdraw ends a trial. The name goes with the last one, unless it was kept.
func (d *Dictionary) Withdraw(token Token) {
	d.names.Lock()
	defer d.names.Unlock()
	index, ok := d.tokenIndex(token)
	if !ok || !d.onTrial(index) {
		return
	}
	if d.trials[index]--; d.trials[index] > 0 {
		return
	}
	delete(d.trials, index)
	d.dropToken(index)
}
