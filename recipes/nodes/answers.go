package nodes

// answered takes the answer to the step.
func (k *keeper) answered(a answer) news {
	switch at := k.at; at {
	case rests, pauses:
		k.at = decides
	case eases:
		k.at = k.after
	case creates:
		return k.created(a)
	case replaces:
		return k.replaced(a)
	case sets:
		return k.set(a)
	case deletes:
		return k.deleted(a)
	case probes:
		k.at = rests
		if a.outcome == noAuth {
			k.at = pauses
		}
	case reads:
		switch {
		case a.outcome == noNode:
			k.at = decides
		case a.outcome != done:
			return k.fails(a)
		case a.equal:
			return k.claims(a)
		default:
			return k.adopts(a)
		}
	default:
		if a.outcome != done {
			return k.fails(a)
		}
		return k.learned(a)
	}
	return nothing
}

// learned takes the answer to a question.
func (k *keeper) learned(a answer) news {
	switch k.at {
	case syncs:
		switch k.unsure {
		case named:
			k.at = confirms
		case search:
			k.at = searches
		case crowded:
			k.at = counts
		default:
			k.unsure, k.at = sure, decides
		}
	case counts:
		k.aim, k.unsure, k.at = free, sure, decides
	case searches, confirms:
		if a.there {
			k.aim = taken
		}
		k.unsure, k.at = sure, decides
	case proves:
		k.claim, k.czxid, k.at = unclaimed, 0, removed
	case looks, checks:
		return k.looked(a)
	}
	return nothing
}

// fails takes the answer to a step that has failed.
func (k *keeper) fails(a answer) news {
	at := k.at
	k.at = pauses
	switch {
	case k.closed && a.outcome == unknown:
		if at == deletes {
			k.at = decides
		}
	case k.closed && a.outcome != failed:
		k.at = ended
	case a.outcome == unknown:
		k.at = decides
		return isErr
	case a.outcome != failed:
		return isDenied
	}
	return isErr
}

// looked judges the node at the path.
func (k *keeper) looked(a answer) news {
	ofSession := a.owner != noSession
	switch {
	case !k.closed && k.stopWhenRemoved && k.czxid != 0 && (!a.there || k.czxid != a.czxid):
		return k.vanished(a)
	case !a.there:
		return k.misses(creates, isDeleted)
	case k.czxid == a.czxid && (!ofSession || a.owner == present):
		return k.ours()
	case ofSession != k.ephemeral:
		return k.foreign()
	case !ofSession && k.claim == doubtful && k.protected:
		return k.claims(a)
	case !ofSession && k.claim == doubtful && a.first:
		k.at = reads
		return nothing
	case !ofSession:
		return k.adopts(a)
	case a.owner == present && k.claim == doubtful:
		return k.claims(a)
	case k.closed && a.owner == lost:
		k.at = deletes
		return nothing
	case a.owner == lost || k.takeOver && !k.closed:
		if k.claim == doubtful || k.claim == made {
			k.claim = past
		}
		return k.misses(replaces, isReplaced)
	default:
		return k.foreign()
	}
}

// claims notes that this object has made the node, with the data of the newest create.
func (k *keeper) claims(a answer) news {
	k.claim, k.czxid, k.wrote = made, a.czxid, k.sent
	return k.ours()
}

// adopts takes a node for ours that another client has made. Its data is set once.
func (k *keeper) adopts(a answer) news {
	k.claim, k.czxid, k.wrote = adopted, a.czxid, 0
	if k.takeOver {
		k.claim = made
	}
	return k.ours()
}

// ours says what is done with the node that is ours.
func (k *keeper) ours() news {
	switch {
	case !k.closed:
		k.stands, k.at = true, stands
	case k.claim == made:
		k.at = deletes
	default:
		k.at = ended
	}
	return nothing
}

// misses notes that the node is not at the path.
func (k *keeper) misses(then step, is news) news {
	stood := k.stands
	k.at, k.after, k.stands, k.czxid = then, then, false, 0
	if then == creates {
		k.claim = unclaimed
	}
	if k.closed {
		k.at = ended
	}
	if !stood {
		return nothing
	}
	k.at = eases
	return is
}

// vanished is called when the node is gone that is not made again.
func (k *keeper) vanished(a answer) news {
	if a.expired {
		then := creates
		if a.there {
			then = decides
		}
		return k.misses(then, isDeleted)
	}
	// The end of the session deletes the node as well, and its events may arrive before
	// this client hears of that. A session that is over is refused.
	k.at, k.stands = proves, false
	return isGone
}

// foreign leaves the node alone that stands at the path.
func (k *keeper) foreign() news {
	stood := k.stands
	k.claim, k.czxid, k.stands = unclaimed, 0, false
	switch {
	case k.closed:
		k.at = ended
		return nothing
	case k.sequential: // the parent was deleted, and its numbers began again
		k.aim, k.at = nowhere, decides
		if stood {
			return isReplaced
		}
		return nothing
	default:
		k.at = probes
		return isForeign
	}
}

// created takes the answer to a create.
func (k *keeper) created(a answer) news {
	k.sent = a.gen
	switch a.outcome {
	case done:
		k.claim, k.czxid, k.wrote, k.aim, k.at = made, a.czxid, a.gen, taken, decides
		return nothing
	case nodeExists:
		k.at = decides
		if k.sequential && k.aim == nowhere {
			k.unsure = crowded
			return nothing
		}
		k.aim, k.unsure = taken, behind
		if k.protected { // no other object has this UUID
			k.claim = doubtful
		}
		return nothing
	case unknown:
		k.claim, k.unsure = doubtful, named
		if k.sequential && k.aim == nowhere {
			k.unsure = search
		}
	}
	return k.fails(a)
}

// replaced takes the answer to a replacement.
func (k *keeper) replaced(a answer) news {
	k.sent = a.gen
	switch a.outcome {
	case done:
		k.claim, k.at = doubtful, decides // its czxid is not known, its session is
		return nothing
	case noNode: // the servers have deleted it meanwhile
		k.claim, k.aim, k.at = unclaimed, free, decides
		return nothing
	case badVersion: // another client has written into it
		k.unsure, k.at = behind, decides
		return nothing
	case unknown:
		k.claim, k.unsure = doubtful, named
	}
	return k.fails(a)
}

// set takes the answer to new data.
func (k *keeper) set(a answer) news {
	if a.outcome == done && a.czxid == k.czxid {
		k.wrote, k.at = a.gen, stands
		return nothing
	}
	k.at = decides
	if a.outcome == done { // it met another client's node
		return nothing
	}
	k.unsure = behind
	if a.outcome == noNode || a.outcome == badVersion {
		return nothing
	}
	return k.fails(a)
}

// deleted takes the answer to a deletion.
func (k *keeper) deleted(a answer) news {
	switch a.outcome {
	case done, noNode:
		k.claim, k.at = unclaimed, ended
		return nothing
	case badVersion:
		k.unsure, k.at = behind, decides
		return nothing
	}
	k.unsure = behind
	return k.fails(a)
}
